// SPDX-License-Identifier: Apache-2.0
//
// The states that parse a frame from its Ethernet header on, and the controller's header in front
// of a frame from the CPU port. The target's parser includes this file: if the states were a parser of
// their own, p4c would clear every header at run time. The target defines parse_tcp.
//
// The states raise no errors, because Tofino has none. Validate counts what they cannot parse.

// Only frames for the pipeline are parsed. All others from the controller are payload.
state parse_packet_out {
    packet.extract(hdr.packet_out);
    transition select(hdr.packet_out.mode) {
        PACKET_OUT_PIPELINE: parse_ethernet;
        default: accept;
    }
}

state parse_ethernet {
    packet.extract(hdr.ethernet);
    transition select(hdr.ethernet.ether_type) {
        ETHER_TYPE_IPV4: parse_ipv4;
#ifdef PIPELINE_IS_GATEWAY
        ETHER_TYPE_ARP: parse_arp;
#endif
        ETHER_TYPE_IPV6: parse_ipv6;
        ETHER_TYPE_MAC_CONTROL: parse_mac_control;
        default: accept;
    }
}

state parse_mac_control {
    packet.extract(hdr.mac_control);
    transition select(hdr.mac_control.opcode) {
        MAC_CONTROL_PFC: parse_pfc;
        default: accept;
    }
}

state parse_pfc {
    packet.extract(hdr.pfc);
    transition accept;
}

// Fragments are hashed by addresses only: just the first has ports, and all must take one way.
state parse_ipv4 {
    packet.extract(hdr.ipv4);
    PARSED_IPV4
    meta.punt_addr = hdr.ipv4.dst_addr;
    transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.more_fragments,
                      hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
        (4, 5, 0, 0, IP_PROTOCOL_UDP): parse_udp;
        (4, 5, 0, 0, IP_PROTOCOL_TCP): parse_tcp;
#ifdef PIPELINE_IS_GATEWAY
        (4, 5, 0, 0, IP_PROTOCOL_ICMP): parse_icmp;
#endif
        default: accept;
    }
}

// Ports behind an extension header are not parsed. Such packets and fragments are hashed by
// addresses and flow label only. They are never RoCEv2, which has UDP directly behind IPv6
// (annex A17.3.1).
state parse_ipv6 {
    packet.extract(hdr.ipv6);
    transition select(hdr.ipv6.version, hdr.ipv6.next_header) {
        (6, IP_PROTOCOL_UDP): parse_udp;
        (6, IP_PROTOCOL_TCP): parse_tcp;
#ifdef PIPELINE_IS_GATEWAY
        (6, IP_PROTOCOL_ICMPV6): parse_icmpv6;
#endif
        default: accept;
    }
}

state parse_udp {
    packet.extract(hdr.udp);
    meta.l4_src_port = hdr.udp.src_port;
    meta.l4_dst_port = hdr.udp.dst_port;
    transition select(hdr.udp.dst_port) {
        UDP_PORT_MAXQD: parse_maxqd;
        UDP_PORT_ROCE: parse_bth;
        default: accept;
    }
}

state parse_maxqd {
    packet.extract(hdr.maxqd);
    transition select(hdr.maxqd.version, hdr.maxqd.next_header) {
        (MAXQD_VERSION, MAXQD_NEXT_BTH): parse_bth;
        default: accept;
    }
}

state parse_bth {
    packet.extract(hdr.bth);
    transition accept;
}

#ifdef PIPELINE_IS_GATEWAY
// Gateway answers only ARP for Ethernet and IPv4.
state parse_arp {
    packet.extract(hdr.arp);
    transition accept;
}

state parse_icmp {
    packet.extract(hdr.icmp);
    transition accept;
}

// A neighbour solicitation has at most one option (RFC 4861 §4.3).
state parse_icmpv6 {
    packet.extract(hdr.icmp);
    transition select(hdr.icmp.type, hdr.ipv6.payload_len) {
        (ICMPV6_NEIGHBOR_SOLICITATION, ND_BYTES): parse_nd;
        (ICMPV6_NEIGHBOR_SOLICITATION, ND_BYTES_WITH_OPTION): parse_nd_with_option;
        default: accept;
    }
}

state parse_nd {
    packet.extract(hdr.nd);
    transition accept;
}

state parse_nd_with_option {
    packet.extract(hdr.nd);
    packet.extract(hdr.nd_option);
    transition accept;
}
#endif
