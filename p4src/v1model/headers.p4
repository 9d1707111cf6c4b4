// SPDX-License-Identifier: Apache-2.0
//
// Headers that only v1model parses: IPv6, ARP, ICMP, neighbour discovery and TCP. They make v1model's
// own struct of all headers, because Tofino's program has only the headers of shared/headers.p4.

#ifndef HEADGATE_V1MODEL_HEADERS_P4
#define HEADGATE_V1MODEL_HEADERS_P4

#define headers_t tofino_headers_t
#include "../shared/headers.p4"
#undef headers_t

// RFC 8200.
header ipv6_t {
    bit<4>      version;
    bit<6>      dscp; // of the traffic class
    bit<2>      ecn;
    bit<20>     flow_label;
    bit<16>     payload_len;
    bit<8>      next_header;
    bit<8>      hop_limit;
    ipv6_addr_t src_addr;
    ipv6_addr_t dst_addr;
}

// RFC 826, of Ethernet and IPv4.
header arp_t {
    bit<16>     hardware;
    bit<16>     protocol;
    bit<8>      hardware_len;
    bit<8>      protocol_len;
    bit<16>     operation;
    mac_t       sender_mac;
    ipv4_addr_t sender_addr;
    mac_t       target_mac;
    ipv4_addr_t target_addr;
}

// The head of ICMP (RFC 792) and ICMPv6 (RFC 4443).
header icmp_t {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
}

// A neighbour solicitation or advertisement behind icmp_t (RFC 4861 §4.3, §4.4).
header nd_t {
    bit<8>      flags; // ND_*; 0 in a solicitation
    bit<24>     reserved;
    ipv6_addr_t target;
}

// The option with an Ethernet address (RFC 4861 §4.6.1).
header nd_option_t {
    bit<8> type;
    bit<8> length; // in 8 bytes
    mac_t  mac;
}

// RFC 9293 §3.1, without options.
header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4>  data_offset; // length of the header with options, in units of 4 bytes
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

// NOP, NOP, and either timestamps (RFC 7323 §3) or SACK with one block (RFC 2018 §3).
header tcp_option_t {
    bit<32> head; // the NOPs, the option's kind and its length; TCP_*_HEAD
    bit<64> values;
}

// A further block of SACK.
header tcp_sack_block_t {
    bit<64> edges;
}

// The maxQD option.
header tcp_maxqd_t {
    bit<32> head; // TCP_MAXQD_HEAD
    bit<16> max_qd;
    bit<16> echo;
}

struct headers_t {
    packet_out_header_t packet_out;
    packet_in_header_t  packet_in;
    poll_report_t       poll_report;
    buffer_report_t     buffer_report;
    ethernet_t          ethernet;
    mac_control_t       mac_control;
    pfc_t               pfc;
    pfc_padding_t       pfc_padding;
    arp_t               arp;
    ipv4_t              ipv4;
    ipv6_t              ipv6;
    icmp_t              icmp;
    nd_t                nd;
    nd_option_t         nd_option;
    udp_t               udp;
    maxqd_t             maxqd;
    bth_t               bth;
    tcp_t               tcp;
    tcp_option_t        tcp_first;
    tcp_option_t        tcp_second;
    tcp_sack_block_t    tcp_block_2;
    tcp_sack_block_t    tcp_block_3;
    tcp_maxqd_t         tcp_maxqd;
}

#endif
