// SPDX-License-Identifier: Apache-2.0
//
// Headers on the wire and between switch and controller.

#ifndef HEADGATE_HEADERS_P4
#define HEADGATE_HEADERS_P4

// Precedes a packet that the switch sends to the controller.
@controller_header("packet_in")
@id(ID_HEADER_PACKET_IN)
header packet_in_header_t {
    @id(1) port_id_t  ingress_port; // of the packet; the polled port in a poll report
    @id(2) queue_id_t queue;        // of the packet's DSCP
    @id(3) bit<4>     reason;       // PACKET_IN_*, or that of the punt entry
}

// Precedes a packet that the controller sends to the switch.
@controller_header("packet_out")
@id(ID_HEADER_PACKET_OUT)
header packet_out_header_t {
    @id(1) port_id_t  egress_port;
    @id(2) queue_id_t queue;
    @id(3) bit<4>     mode; // PACKET_OUT_*
}

// The registers of one port, read in its egress. The poll's payload follows unchanged, so a controller
// can distinguish its polls.
//
//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-------------+-----------------+-------------------------------+
// |   follows   |      port       |    last queueing delay        |
// +-------------+-----------------+-------------------------------+
// |                    time (48, target clock ticks)              |
// +                               +-------------------------------+
// |                               |   departed bytes (48)         |
// +-------------------------------+                               +
// |                                                               |
// +---------------------------------------------------------------+
// |                    departed packets (48)                      |
// +                               +-------------------------------+
// |                               |  admission drops (32)         |
// +-------------------------------+-------------------------------+
// |                               |  bytes of queue 0 … 7, 32 each|
header poll_report_t {
    bit<7>    follows; // REPORT_*
    port_id_t port;
    bit<16>   last_delay;       // of the last packet that left, in maxQD units
    bit<48>   time;             // of the report
    bit<48>   departed_bytes;   // since start, wraps
    bit<48>   departed_packets; // since start, wraps
    bit<32>   admission_drops;  // since start, wraps
    bit<32>   queue_bytes_0;
    bit<32>   queue_bytes_1;
    bit<32>   queue_bytes_2;
    bit<32>   queue_bytes_3;
    bit<32>   queue_bytes_4;
    bit<32>   queue_bytes_5;
    bit<32>   queue_bytes_6;
    bit<32>   queue_bytes_7;
}

// The buffer's accounts of the port's ingress queues, behind poll_report_t. All counts are in bytes.
// Under DSH, shared bytes include insured bytes.
//
//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-----------+-+-+---------------+-------------------------------+
// |     0     |V|P| paused queues |   last PAUSE (48)             |
// +-----------+-+-+---------------+                               +
// |                                                               |
// +---------------------------------------------------------------+
// |      shared bytes of the port's lossless classes              |
// |      insured bytes of the port                                |
// |      private bytes of class 0 … 7, 32 bits each               |
// |      shared bytes of class 0 … 7                              |
// |      headroom bytes of class 0 … 7                            |
// |      the switch's private, shared, headroom, insured bytes    |
// |      their peaks since start                                  |
header buffer_report_t {
    bit<6>  reserved;
    bit<1>  victim;        // V: SPFC treats the port as a victim
    bit<1>  port_paused;   // P: the whole port is paused
    bit<8>  paused_queues; // bit n for class n
    bit<48> last_pause;    // time of the last PAUSE of all that is paused, in ticks
    bit<32> port_shared;
    bit<32> insured;
    bit<32> private_0;
    bit<32> private_1;
    bit<32> private_2;
    bit<32> private_3;
    bit<32> private_4;
    bit<32> private_5;
    bit<32> private_6;
    bit<32> private_7;
    bit<32> shared_0;
    bit<32> shared_1;
    bit<32> shared_2;
    bit<32> shared_3;
    bit<32> shared_4;
    bit<32> shared_5;
    bit<32> shared_6;
    bit<32> shared_7;
    bit<32> headroom_0;
    bit<32> headroom_1;
    bit<32> headroom_2;
    bit<32> headroom_3;
    bit<32> headroom_4;
    bit<32> headroom_5;
    bit<32> headroom_6;
    bit<32> headroom_7;
    bit<32> used_private;
    bit<32> used_shared;
    bit<32> used_headroom;
    bit<32> used_insurance;
    bit<32> peak_private;
    bit<32> peak_shared;
    bit<32> peak_headroom;
    bit<32> peak_insurance;
}

header ethernet_t {
    mac_t   dst_addr;
    mac_t   src_addr;
    bit<16> ether_type;
}

// IEEE 802.3 clause 31.
header mac_control_t {
    bit<16> opcode;
}

// IEEE 802.1Q clause 36: a vector of classes, and their times in quanta of 512 bit times.
header pfc_t {
    bit<8>  reserved;
    bit<8>  class_enable;
    bit<16> time_0;
    bit<16> time_1;
    bit<16> time_2;
    bit<16> time_3;
    bit<16> time_4;
    bit<16> time_5;
    bit<16> time_6;
    bit<16> time_7;
}

// Extends a PFC frame to the least length of Ethernet.
header pfc_padding_t {
    bit<208> zero;
}

// RFC 791, without options.
header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<6>      dscp;
    bit<2>      ecn;
    bit<16>     total_len;
    bit<16>     identification;
    bit<1>      reserved;
    bit<1>      dont_fragment;
    bit<1>      more_fragments;
    bit<13>     fragment_offset;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

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

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// Söze's telemetry: the largest queueing delay on the path.
header maxqd_t {
    bit<4>  version;
    bit<1>  echo; // the value is echoed to its sender: switches do not change it
    bit<3>  reserved;
    bit<8>  next_header; // MAXQD_NEXT_*
    bit<16> max_qd;
}

// InfiniBand base transport header (IBTA volume 1, 9.2), as RoCEv2 carries it in UDP.
header bth_t {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  migration;
    bit<2>  pad_count;
    bit<4>  version;
    bit<16> partition_key;
    bit<1>  fecn;
    bit<1>  becn;
    bit<6>  reserved_1;
    bit<24> dst_qp;
    bit<1>  ack_request;
    bit<7>  reserved_2;
    bit<24> psn;
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

// The fields of the IPv4 header in order, without its checksum.
#define IPV4_CHECKSUM_FIELDS(h) \
    { h.version, h.ihl, h.dscp, h.ecn, h.total_len, h.identification, h.reserved, \
      h.dont_fragment, h.more_fragments, h.fragment_offset, h.ttl, h.protocol, \
      h.src_addr, h.dst_addr }

// The fields under the checksum of a neighbour message without options.
#define ND_CHECKSUM_FIELDS \
    hdr.ipv6.src_addr, hdr.ipv6.dst_addr, 16w0, hdr.ipv6.payload_len, 24w0, hdr.ipv6.next_header, \
    hdr.icmp.type, hdr.icmp.code, hdr.nd.flags, hdr.nd.reserved, hdr.nd.target
#define ND_OPTION_FIELDS hdr.nd_option.type, hdr.nd_option.length, hdr.nd_option.mac

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
