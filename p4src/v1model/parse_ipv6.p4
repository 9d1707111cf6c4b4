// SPDX-License-Identifier: Apache-2.0
//
// Parser states of v1model only; shared/parser.p4 has the others.

// Only ARP for Ethernet and IPv4 is parsed; Gateway does not answer other ARP.
state parse_arp {
    packet.extract(hdr.arp);
    transition accept;
}

// Ports behind an extension header are not parsed. Such packets and fragments are hashed by
// addresses and flow label only. They are never RoCEv2, which has UDP directly behind IPv6
// (annex A17.3.1).
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
