// SPDX-License-Identifier: Apache-2.0
//
// Numbers that switch and controller share and only v1model uses. The generator copies them
// to the Go package p4src/ids.

#ifndef HEADGATE_V1MODEL_CONSTANTS_P4
#define HEADGATE_V1MODEL_CONSTANTS_P4

typedef bit<128> ipv6_addr_t;

// Further values of drop_reason_t. Never renumber.
const drop_reason_t DROP_PUNT_LIMIT = 14;    // the port's rate of frames to the controller is exceeded
const drop_reason_t DROP_SOURCE = 15;        // the edge port does not permit the source address
const drop_reason_t DROP_IPV6_HEADER = 16;   // version or payload length
const drop_reason_t DROP_HOP_LIMIT = 17;     // of IPv6
const drop_reason_t DROP_LINK_SCOPE = 18;    // link-local IPv6 that the gateway did not answer

// All 64 DSCPs for each of 64 ports with their own map.
const bit<32> PORT_DSCP_ENTRIES = 4096;

// RED curves are numbered: those below 8 are of the queues, any other is of the ports that have it for a queue.
// NO_CURVE has no entries. There is room for 64 curves with at most 64 steps each (package tables/red).
const bit<8> NO_CURVE = 255;
const bit<32> CURVE_ENTRIES = 4096;

// EtherTypes (IEEE 802 numbers) and IP protocols (IANA) that shared/constants.p4 lacks.
const bit<16> ETHER_TYPE_ARP = 0x0806;
const bit<16> ETHER_TYPE_IPV6 = 0x86dd;
const bit<8>  IP_PROTOCOL_ICMP = 1;
const bit<8>  IP_PROTOCOL_ICMPV6 = 58;

// The first ten bits of a link-local address (RFC 4291 §2.5.6).
const bit<10> LINK_LOCAL = 0x3fa;

// ARP (RFC 826): Ethernet, and its operations.
const bit<16> ARP_ETHERNET = 1;
const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY = 2;

// Types of ICMP (RFC 792) and ICMPv6 (RFC 4443, RFC 4861).
const bit<8> ICMP_ECHO = 8;
const bit<8> ICMP_ECHO_REPLY = 0;
const bit<8> ICMPV6_ECHO = 128;
const bit<8> ICMPV6_ECHO_REPLY = 129;
const bit<8> ICMPV6_NEIGHBOR_SOLICITATION = 135;
const bit<8> ICMPV6_NEIGHBOR_ADVERTISEMENT = 136;

// Neighbour discovery (RFC 4861): message lengths, the hop limit of messages that passed no router,
// flags of an advertisement, and options.
const bit<16> ND_BYTES = 24;
const bit<16> ND_BYTES_WITH_OPTION = 32;
const bit<8> ND_HOP_LIMIT = 255;
const bit<8> ND_ROUTER = 0x80;
const bit<8> ND_SOLICITED = 0x40;
const bit<8> ND_OVERRIDE = 0x20;
const bit<8> ND_SOURCE_MAC = 1;
const bit<8> ND_TARGET_MAC = 2;

// TTL and hop limit of the gateway's answers.
const bit<8> GATEWAY_TTL = 64;

// Addresses that the gateway answers for, per IP version: its own, and prefixes as a proxy.
const bit<32> GATEWAY_ENTRIES = 1024;

// Two entries of IPv4 and four of IPv6 for each port, and as many again for ports with several addresses.
const bit<32> SOURCE_CHECK_ENTRIES = PORT_CELLS * 8;

// A queue pair for each pair of addresses that PACC's flow table holds.
const bit<32> QUEUE_PAIR_ENTRIES = FLOW_ENTRIES;

// The constant bits of the transport header behind a shim (packet/bth.go), and the least UDP length
// with a shim: shim, transport header and ICRC.
const bit<16> DEFAULT_PARTITION_KEY = 0xffff;
const bit<16> SHIM_DATAGRAM_BYTES = 28;

// Options of TCP with the two NOPs in front of them: kind and length of timestamps (RFC 7323 §3.2), and
// kind and length of SACK without blocks (RFC 2018 §3). A block has 8 bytes.
const bit<32> TCP_TIMESTAMPS_HEAD = 0x0101080a;
const bit<32> TCP_SACK_HEAD = 0x01010502;

// Kind, length and ExID of the maxQD option (int/maxqd/option.go).
const bit<32> TCP_MAXQD_HEAD = 0xfe084847;

// Opcode of an acknowledgement of the reliable connection (IBTA volume 1, 9.2.1).
const bit<8> BTH_ACKNOWLEDGE = 17;

#endif
