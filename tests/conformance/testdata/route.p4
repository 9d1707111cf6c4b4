// SPDX-License-Identifier: Apache-2.0
//
// One longest-prefix-match table. A frame is an address; what matches nothing goes back.

#include <core.p4>
#include <v1model.p4>

header destination_t {
    bit<32> addr;
}

struct headers_t {
    destination_t destination;
}

struct metadata_t { }

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.destination);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<32> next_hop, bit<9> port) {
        hdr.destination.addr = next_hop;
        std.egress_spec = port;
    }
    action discard() {
        mark_to_drop(std);
    }
    table routes {
        key = { hdr.destination.addr : lpm @name("addr"); }
        actions = { forward; discard; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    apply {
        std.egress_spec = std.ingress_port;
        routes.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FrameParser(), Verify(), ingress(), egress(), Update(), FrameDeparser()) main;
