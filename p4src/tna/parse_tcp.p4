// SPDX-License-Identifier: Apache-2.0
//
// States of the egress parser that find the maxQD option of TCP. v1model/parse_tcp.p4 lists the layouts.
// A state checks the kinds and lengths of the options that it extracts.

state parse_tcp {
    packet.extract(hdr.tcp);
    tcp_checksum.subtract({hdr.tcp.checksum});
    transition select(hdr.tcp.data_offset) {
        7: parse_tcp_last;
        10: parse_tcp_10;
        12: parse_tcp_12;
        13: parse_tcp_13;
        14: parse_tcp_14;
        15: parse_tcp_15;
        default: accept;
    }
}

state parse_tcp_10 {
    packet.extract(hdr.tcp_first);
    transition select(hdr.tcp_first.head) {
        TCP_TIMESTAMPS_HEAD: parse_tcp_last;
        TCP_SACK_HEAD + 8: parse_tcp_last;
        default: accept;
    }
}

state parse_tcp_12 {
    packet.extract(hdr.tcp_first);
    transition select(hdr.tcp_first.head) {
        TCP_SACK_HEAD + 16: parse_tcp_block;
        default: accept;
    }
}

state parse_tcp_13 {
    packet.extract(hdr.tcp_first);
    transition select(hdr.tcp_first.head) {
        TCP_TIMESTAMPS_HEAD: parse_tcp_13_second;
        default: accept;
    }
}

state parse_tcp_13_second {
    packet.extract(hdr.tcp_second);
    transition select(hdr.tcp_second.head) {
        TCP_SACK_HEAD + 8: parse_tcp_last;
        default: accept;
    }
}

state parse_tcp_14 {
    packet.extract(hdr.tcp_first);
    transition select(hdr.tcp_first.head) {
        TCP_SACK_HEAD + 24: parse_tcp_14_blocks;
        default: accept;
    }
}

state parse_tcp_14_blocks {
    packet.extract(hdr.tcp_block_2);
    packet.extract(hdr.tcp_block_3);
    transition parse_tcp_last;
}

state parse_tcp_15 {
    packet.extract(hdr.tcp_first);
    transition select(hdr.tcp_first.head) {
        TCP_TIMESTAMPS_HEAD: parse_tcp_15_second;
        default: accept;
    }
}

state parse_tcp_15_second {
    packet.extract(hdr.tcp_second);
    transition select(hdr.tcp_second.head) {
        TCP_SACK_HEAD + 16: parse_tcp_block;
        default: accept;
    }
}

state parse_tcp_block {
    packet.extract(hdr.tcp_block_2);
    transition parse_tcp_last;
}

state parse_tcp_last {
    transition select(packet.lookahead<bit<32>>()) {
        TCP_MAXQD_HEAD: parse_tcp_maxqd;
        default: accept;
    }
}

state parse_tcp_maxqd {
    packet.extract(hdr.tcp_maxqd);
    tcp_checksum.subtract({hdr.tcp_maxqd.max_qd});
    meta.target.tcp_sum = tcp_checksum.get();
    transition accept;
}
