// SPDX-License-Identifier: Apache-2.0
//
// Parsers, checksums and deparsers of the Tofino native architecture.

#ifndef HEADGATE_TNA_PARSER_P4
#define HEADGATE_TNA_PARSER_P4

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                     out ingress_intrinsic_metadata_t intrinsic) {
    Checksum() ipv4_checksum;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.arrival.truncated = 0;
        meta.arrival.bad_checksum = 0;
        meta.arrival.beyond_frame = 0; // ingress does not know the frame's length
        meta.l4_src_port = 0;
        meta.l4_dst_port = 0;
        meta.decided = 0;
        meta.egress_port = 0;
        meta.drop_reason = DROP_NONE;
        meta.punt_addr = 0;
        meta.excess_len = 0;
        meta.target.refused_source = 0;
        meta.target.routed = 0;
#ifdef PIPELINE_IS_GATEWAY
        meta.target.asks = ASKS_NOTHING;
        meta.target.answers = 0;
        meta.target.own = 0;
        meta.target.advertises = 0;
#endif
        meta.learn = 0;
        meta.bridged.setValid();
        meta.bridged.source = FROM_INGRESS;
        meta.bridged.traffic_class = 0;
        meta.bridged.queue = 0;
        meta.bridged.poll = 0;
        meta.bridged.pacc_watched = 0;
        meta.bridged.pacc_threshold = 0;
        transition select(intrinsic.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

#include "../shared/parser.p4"

    // The ports stay in the payload.
    state parse_tcp {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.l4_src_port = ports[31:16];
        meta.l4_dst_port = ports[15:0];
        transition accept;
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t deparse) {
    @name(".flow_digest_t")
    Digest<flow_digest_t>() flow_digest;
    @name(".flow_ipv6_digest_t")
    Digest<flow_ipv6_digest_t>() flow_ipv6_digest;
    Checksum() ipv4_checksum;
#ifdef PIPELINE_IS_GATEWAY
    Checksum() nd_checksum;
#endif

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update(IPV4_CHECKSUM_FIELDS(hdr.ipv4));
        }
#ifdef PIPELINE_IS_GATEWAY
        if (meta.target.advertises == 1) {
            hdr.icmp.checksum = nd_checksum.update({ ND_CHECKSUM_FIELDS, ND_OPTION_FIELDS });
        }
#endif
        if (deparse.digest_type == DIGEST_FLOW) {
            flow_digest.pack({hdr.ipv4.src_addr, hdr.ipv4.dst_addr, meta.egress_port});
        }
        if (deparse.digest_type == DIGEST_FLOW_IPV6) {
            flow_ipv6_digest.pack({hdr.ipv6.src_addr, hdr.ipv6.dst_addr, meta.egress_port});
        }
        packet.emit(meta.bridged);
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
#ifdef PIPELINE_IS_GATEWAY
        packet.emit(hdr.arp);
#endif
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
#ifdef PIPELINE_IS_GATEWAY
        packet.emit(hdr.icmp);
        packet.emit(hdr.nd);
        packet.emit(hdr.nd_option);
#endif
        packet.emit(hdr.udp);
        packet.emit(hdr.maxqd);
        packet.emit(hdr.bth);
    }
}

// Egress parses only packets that are forwarded.
parser EgressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                    out egress_intrinsic_metadata_t intrinsic) {
    mirrored_t mirrored;
    Checksum() tcp_checksum;

    state start {
        packet.extract(intrinsic);
        meta.target.poll_session = 0;
        meta.target.bytes_carry = 0;
        meta.target.packets_carry = 0;
        meta.scaled_delay = 0;
        meta.congestion = 0;
        meta.target.curve = 0;
        meta.target.depth = 0;
        meta.mark_probability = 0;
        meta.mark_always = 0;
        meta.marked = 0;
        meta.stamping = 0;
        meta.scale = 0;
        meta.hop_qd = 0;
        meta.growth_qd = 0;
        meta.target.least_len = 0;
        meta.target.growth_tcp = 0;
        meta.target.stamped_tcp = 0;
        transition select(packet.lookahead<bit<8>>()) {
            FROM_INGRESS: parse_bridged;
            FROM_INGRESS_OPAQUE: parse_opaque;
            default: parse_mirrored;
        }
    }

    state parse_mirrored {
        packet.extract(mirrored);
        transition accept;
    }

    state parse_opaque {
        packet.extract(meta.bridged);
        transition accept;
    }

    state parse_bridged {
        packet.extract(meta.bridged);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            ETHER_TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            IP_PROTOCOL_UDP: parse_udp;
            IP_PROTOCOL_TCP: parse_tcp;
            default: accept;
        }
    }

    // Ingress drops headers with options.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, 0, IP_PROTOCOL_UDP): parse_udp;
            (0, 0, IP_PROTOCOL_TCP): parse_tcp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            UDP_PORT_MAXQD: parse_maxqd;
            default: accept;
        }
    }

    state parse_maxqd {
        packet.extract(hdr.maxqd);
        transition accept;
    }

#include "parse_tcp.p4"
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t deparse) {
    Checksum() ipv4_checksum;
    Checksum() tcp_checksum;
    Mirror() poll_mirror;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update(IPV4_CHECKSUM_FIELDS(hdr.ipv4));
        }
        if (meta.target.stamped_tcp == 1) {
            hdr.tcp.checksum = tcp_checksum.update({hdr.tcp_maxqd.max_qd, meta.target.tcp_sum});
        }
        if (deparse.mirror_type == MIRROR_POLL) {
            poll_mirror.emit<mirrored_t>(meta.target.poll_session, {FROM_MIRROR});
        }
        packet.emit(hdr.packet_in);
        packet.emit(hdr.poll_report);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.maxqd);
        packet.emit(hdr.tcp);
        packet.emit(hdr.tcp_first);
        packet.emit(hdr.tcp_second);
        packet.emit(hdr.tcp_block_2);
        packet.emit(hdr.tcp_block_3);
        packet.emit(hdr.tcp_maxqd);
    }
}

#endif
