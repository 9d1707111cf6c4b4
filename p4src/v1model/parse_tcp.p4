// SPDX-License-Identifier: Apache-2.0
//
// States that find the maxQD option of TCP. Linux writes the option last, behind timestamps and SACK
// blocks, so the data offset tells the layout:
//
//   data offset    bytes in front of the option
//    7             none
//   10             12: timestamps, or 1 SACK block
//   12             20: 2 SACK blocks
//   13             24: timestamps and 1 SACK block
//   14             28: 3 SACK blocks
//   15             32: timestamps and 2 SACK blocks
//
// Timestamps with 3 blocks, and 4 blocks alone, leave no room for the option: Linux then omits it.
// The states only split the header into pieces, and the deparser emits the same pieces. MaxQdTcp
// examines their values.

// Forwarding needs only the ports, so a header that ends behind them passes.
state parse_tcp {
    bit<32> ports = packet.lookahead<bit<32>>();
    meta.l4_src_port = ports[31:16];
    meta.l4_dst_port = ports[15:0];
    meta.target.ports_found = 1;
    packet.extract(hdr.tcp);
    transition select(hdr.tcp.data_offset) {
        7: parse_tcp_maxqd;
        10: parse_tcp_first;
        12 &&& 14: parse_tcp_first; // and 13
        14 &&& 14: parse_tcp_first; // and 15
        default: accept;
    }
}

// Timestamps, or NOP NOP and the head of SACK with its first block.
state parse_tcp_first {
    packet.extract(hdr.tcp_first);
    transition select(hdr.tcp.data_offset) {
        10: parse_tcp_maxqd;
        13: parse_tcp_second;
        15: parse_tcp_second;
        default: parse_tcp_block;
    }
}

// NOP NOP and the head of SACK with its first block, behind timestamps.
state parse_tcp_second {
    packet.extract(hdr.tcp_second);
    transition select(hdr.tcp.data_offset) {
        13: parse_tcp_maxqd;
        default: parse_tcp_block;
    }
}

state parse_tcp_block {
    packet.extract(hdr.tcp_block_2);
    transition select(hdr.tcp.data_offset) {
        14: parse_tcp_last_block;
        default: parse_tcp_maxqd;
    }
}

state parse_tcp_last_block {
    packet.extract(hdr.tcp_block_3);
    transition parse_tcp_maxqd;
}

state parse_tcp_maxqd {
    packet.extract(hdr.tcp_maxqd);
    transition accept;
}
