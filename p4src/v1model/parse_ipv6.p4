// SPDX-License-Identifier: Apache-2.0
//
// States that v1model's parser has beside those of shared/parser.p4.

// What does not fit ARP of Ethernet and IPv4 stays unanswered (Gateway).
state parse_arp {
    packet.extract(hdr.arp);
    transition accept;
}

// Behind an extension header there are no ports: the packet goes by its addresses and flow label
// alone, as fragments must, and is nobody's RoCEv2 (annex A17.3.1 has UDP behind IPv6).
state parse_ipv6 {
    packet.extract(hdr.ipv6);
    transition select(hdr.ipv6.version, hdr.ipv6.next_header) {
        (6, IP_PROTOCOL_UDP): parse_udp;
        (6, IP_PROTOCOL_TCP): parse_tcp;
        (6, IP_PROTOCOL_ICMPV6): parse_icmpv6;
        default: accept;
    }
}

state parse_icmp {
    packet.extract(hdr.icmp);
    transition accept;
}

// A solicitation of a neighbour has one option or none (RFC 4861 §4.3).
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
