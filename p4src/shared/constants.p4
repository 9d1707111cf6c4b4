// SPDX-License-Identifier: Apache-2.0
//
// Numbers that switch and controller share. The generator (p4src/internal/gen) copies them to the
// Go package p4src/ids.

#ifndef HEADGATE_CONSTANTS_P4
#define HEADGATE_CONSTANTS_P4

typedef bit<9>   port_id_t;
typedef bit<3>   queue_id_t;
typedef bit<3>   class_id_t;
typedef bit<8>   drop_reason_t;
typedef bit<48>  mac_t;
typedef bit<32>  ipv4_addr_t;
typedef bit<128> ipv6_addr_t;

// The controller's port. 510, because 511 is v1model's port number for a drop. A chip defines
// another port before, in chip.p4.
#ifndef CPU_PORT
const port_id_t CPU_PORT = 510;
#endif

// The clone session that carries a poll report to the CPU port. The controller installs it.
// Tofino 2 has eight bits for a session's number.
const bit<32> POLL_CLONE_SESSION = 254;

// The queue with the highest number has strict priority. Polls use it, so that they do not wait
// behind data.
const queue_id_t HIGHEST_QUEUE = 7;

// PFC frames leave port p by clone session PFC_CLONE_SESSION + p. The controller installs the
// session, with the highest class of service that the target accepts.
const bit<32> PFC_CLONE_SESSION = 1024;

// The limit of a queue without a limit: no register exceeds it.
const bit<32> UNLIMITED = 0xffffffff;

// EtherTypes (IEEE 802 numbers) and IP protocols (IANA).
const bit<16> ETHER_TYPE_IPV4 = 0x0800;
const bit<16> ETHER_TYPE_ARP = 0x0806;
const bit<16> ETHER_TYPE_IPV6 = 0x86dd;
const bit<16> ETHER_TYPE_MAC_CONTROL = 0x8808;
const bit<8>  IP_PROTOCOL_ICMP = 1;
const bit<8>  IP_PROTOCOL_TCP = 6;
const bit<8>  IP_PROTOCOL_UDP = 17;
const bit<8>  IP_PROTOCOL_ICMPV6 = 58;

// The first ten bits of a link-local address (RFC 4291 §2.5.6).
const bit<10> LINK_LOCAL = 0x3fa;

// UDP destination ports: RoCEv2 (IBTA Annex A17) and the maxQD shim (dynamic range of RFC 6335).
const bit<16> UDP_PORT_ROCE = 4791;
const bit<16> UDP_PORT_MAXQD = 50151;

// MAC control opcode of priority-based flow control (IEEE 802.1Q clause 36).
const bit<16> MAC_CONTROL_PFC = 0x0101;

// The destination of MAC control frames, and Ethernet's shortest frame without FCS.
const mac_t MAC_CONTROL_ADDRESS = 0x0180c2000001;
const bit<32> PFC_FRAME_BYTES = 60;

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

// The maxQD shim: its version, and the only next header that the switch parses. Everything else is
// payload.
const bit<4> MAXQD_VERSION = 1;
const bit<8> MAXQD_NEXT_BTH = 1;

// The constant bits of the transport header behind a shim (packet/bth.go), and the least UDP length
// with a shim: shim, transport header and ICRC.
const bit<16> DEFAULT_PARTITION_KEY = 0xffff;
const bit<16> SHIM_DATAGRAM_BYTES = 28;

// Opcode of an acknowledgement of the reliable connection (IBTA volume 1, 9.2.1).
const bit<8> BTH_ACKNOWLEDGE = 17;

// Options of TCP with the two NOPs in front of them: kind and length of timestamps (RFC 7323 §3.2), and
// kind and length of SACK without blocks (RFC 2018 §3). A block has 8 bytes.
const bit<32> TCP_TIMESTAMPS_HEAD = 0x0101080a;
const bit<32> TCP_SACK_HEAD = 0x01010502;

// Kind, length and ExID of the maxQD option (int/maxqd/option.go).
const bit<32> TCP_MAXQD_HEAD = 0xfe084847;

// The largest value of a 16-bit field that saturates: a queueing delay.
const bit<16> SATURATED_16 = 0xffff;

// Explicit congestion notification (RFC 3168).
const bit<2> ECT_1 = 1;
const bit<2> ECT_0 = 2;
const bit<2> CE = 3;

// RED curves have numbers. Curves 0 to 7 are those of queues 0 to 7; the others are for ports that have
// a curve of their own for a queue. NO_CURVE has no entries.
const bit<8> NO_CURVE = 255;

// The length of the packet_out header on the CPU port.
const bit<32> PACKET_OUT_BYTES = 2;

// The modes of a packet-out.
const bit<4> PACKET_OUT_PORT = 0;     // leave unchanged by the given port and queue
const bit<4> PACKET_OUT_PIPELINE = 1; // be processed like a frame that arrived
const bit<4> PACKET_OUT_POLL = 2;     // report the registers of the given port
const bit<4> PACKET_OUT_REFRESH = 3;  // repeat the PAUSE of all that the port has paused
const bit<4> PACKET_OUT_FORGET = 4;   // empty the accounts of an idle ingress port

// Flags of a buffer policy. The program sets BUFFER_ON if there is a policy.
const bit<6> BUFFER_DYNAMIC = 1;   // T is α times the free bytes; otherwise T is fixed
const bit<6> BUFFER_INSURED = 2;   // headroom is the insurance of each port (DSH)
const bit<6> BUFFER_ESTIMATE = 4;  // queues pause early, by Algorithms 3 and 4
const bit<6> BUFFER_VICTIMS = 8;   // victim ports may use the shared pool and what paused queues lend (SPFC)
const bit<6> BUFFER_BY_QUEUE = 16; // insured, but a queue's own threshold bounds it
const bit<6> BUFFER_ON = 32;

// Cells of register buffer_pools: the bytes in use. The peak of each is POOL_PEAKS cells behind it. A
// refused packet is in pool POOL_NONE.
const bit<32> POOL_PRIVATE = 0;
const bit<32> POOL_SHARED = 1;
const bit<32> POOL_HEADROOM = 2;
const bit<32> POOL_INSURANCE = 3;
const bit<32> POOL_NONE = 4;
const bit<32> POOL_PEAKS = 5;
const bit<32> POOL_LENT = 10; // what all paused queues lend

// PFC frames, and the list of fields that a clone keeps to become one.
const bit<2> SIGNAL_NONE = 0;
const bit<2> SIGNAL_PAUSE = 1;
const bit<2> SIGNAL_RESUME = 2;
const bit<2> SIGNAL_REFRESH = 3; // a repeated PAUSE
const bit<8> SIGNAL_LIST = 1;

// The number 1 as a logarithm of DSH's tables.
const bit<32> LOG_ONE = 0x10000;

// The reason of a packet-in that is a poll's report. Punt entries define all other reasons.
const bit<4> PACKET_IN_POLL = 1;

// The header between a poll's report and its payload.
const bit<7> REPORT_BUFFER = 0; // buffer_report_t
const bit<7> REPORT_ALONE = 1;  // nothing

// Why a packet was dropped: the index of counter ingress.drops. Never renumber.
const drop_reason_t DROP_NONE = 0;
const drop_reason_t DROP_PARSER = 1;         // the frame ends inside a header
const drop_reason_t DROP_IPV4_HEADER = 2;    // version, header length or total length
const drop_reason_t DROP_IPV4_OPTIONS = 3;   // IHL > 5: no fabric traffic has options
const drop_reason_t DROP_IPV4_CHECKSUM = 4;
const drop_reason_t DROP_MAC_CONTROL = 5;    // PAUSE and PFC end at the MAC
const drop_reason_t DROP_MAXQD_SHIM = 6;     // unknown version of the shim
const drop_reason_t DROP_NOT_IPV4 = 7;       // neither IP nor punted
const drop_reason_t DROP_NO_ROUTE = 8;
const drop_reason_t DROP_TTL = 9;
const drop_reason_t DROP_ADMISSION = 10;     // the queue is at its limit
const drop_reason_t DROP_PACKET_OUT = 11;    // unknown mode of a packet-out
const drop_reason_t DROP_UDP_LENGTH = 12;    // beyond the packet, or too short for the shim
const drop_reason_t DROP_BUFFER = 13;        // no memory that the packet may use
const drop_reason_t DROP_PUNT_LIMIT = 14;    // the port's rate of frames to the controller is exceeded
const drop_reason_t DROP_SOURCE = 15;        // the edge port does not permit the source address
const drop_reason_t DROP_IPV6_HEADER = 16;   // version or payload length
const drop_reason_t DROP_HOP_LIMIT = 17;     // of IPv6
const drop_reason_t DROP_LINK_SCOPE = 18;    // link-local IPv6 that the gateway did not answer

#endif
