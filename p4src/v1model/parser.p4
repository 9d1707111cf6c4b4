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

#include "../shared/parser.p4"
#include "parse_tcp.p4"
}

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
