// SPDX-License-Identifier: Apache-2.0
//
// Parser, checksums and deparser of the v1model architecture.

#ifndef HEADGATE_V1MODEL_PARSER_P4
#define HEADGATE_V1MODEL_PARSER_P4

parser SwitchParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

// Includes the shared states and adds IPv6, ARP, ICMP and TCP options to their selects. The macros
// insert the cases, so that the shared file, which Tofino compiles too, needs no condition.
#define ETHER_TYPE_MAC_CONTROL ETHER_TYPE_ARP: parse_arp; ETHER_TYPE_IPV6: parse_ipv6; ETHER_TYPE_MAC_CONTROL
#define IP_PROTOCOL_UDP IP_PROTOCOL_ICMP): parse_icmp; (4, 5, 0, 0, IP_PROTOCOL_UDP
#define IP_PROTOCOL_TCP IP_PROTOCOL_TCP): parse_tcp; (4, 5, 0, 0, IP_PROTOCOL_TCP
#include "../shared/parser.p4"
#undef ETHER_TYPE_MAC_CONTROL
#undef IP_PROTOCOL_UDP
#undef IP_PROTOCOL_TCP
#include "parse_ipv6.p4"
#include "parse_tcp.p4"
}

// The fields under the checksum of a neighbour message without options.
#define ND_CHECKSUM_FIELDS \
    hdr.ipv6.src_addr, hdr.ipv6.dst_addr, 16w0, hdr.ipv6.payload_len, 24w0, hdr.ipv6.next_header, \
    hdr.icmp.type, hdr.icmp.code, hdr.nd.flags, hdr.nd.reserved, hdr.nd.target
#define ND_OPTION_FIELDS hdr.nd_option.type, hdr.nd_option.length, hdr.nd_option.mac

// A header with options is dropped, so its checksum is not verified.
control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        verify_checksum(hdr.nd.isValid() && !hdr.nd_option.isValid(),
                        { ND_CHECKSUM_FIELDS }, hdr.icmp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.nd.isValid() && hdr.nd_option.isValid(),
                        { ND_CHECKSUM_FIELDS, ND_OPTION_FIELDS }, hdr.icmp.checksum,
                        HashAlgorithm.csum16);
    }
}

control UpdateChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        update_checksum(meta.target.advertises == 1,
                        { ND_CHECKSUM_FIELDS, ND_OPTION_FIELDS }, hdr.icmp.checksum,
                        HashAlgorithm.csum16);
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.poll_report);
        packet.emit(hdr.buffer_report);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.mac_control);
        packet.emit(hdr.pfc);
        packet.emit(hdr.pfc_padding);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.icmp);
        packet.emit(hdr.nd);
        packet.emit(hdr.nd_option);
        packet.emit(hdr.udp);
        packet.emit(hdr.maxqd);
        packet.emit(hdr.bth);
        packet.emit(hdr.tcp);
        packet.emit(hdr.tcp_first);
        packet.emit(hdr.tcp_second);
        packet.emit(hdr.tcp_block_2);
        packet.emit(hdr.tcp_block_3);
        packet.emit(hdr.tcp_maxqd);
    }
}

#endif
