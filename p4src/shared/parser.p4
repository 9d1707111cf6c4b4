// SPDX-License-Identifier: Apache-2.0
//
// States that parse a frame from its Ethernet header on, and the controller's header in
// front of one from the CPU port. They stand in a file to be included in the target's
// parser: p4c clears every header at run time when they are a parser of their own.
//
// They raise no errors (Tofino has none): what they cannot parse they leave to Validate,
// which counts it.

// What goes out of a port as it is, and a poll, are payload and may be anything.
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

// Fragments go by addresses alone: only the first has ports, and all must take one way.
state parse_ipv4 {
    packet.extract(hdr.ipv4);
    PARSED_IPV4
    meta.punt_addr = hdr.ipv4.dst_addr;
    transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.more_fragments,
                      hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
        (4, 5, 0, 0, IP_PROTOCOL_UDP): parse_udp;
        (4, 5, 0, 0, IP_PROTOCOL_TCP): parse_tcp_ports;
        default: accept;
    }
}

state parse_tcp_ports {
    bit<32> ports = packet.lookahead<bit<32>>();
    meta.l4_src_port = ports[31:16];
    meta.l4_dst_port = ports[15:0];
    transition accept;
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
