// SPDX-License-Identifier: Apache-2.0
//
// A ternary and an optional table, each of which chooses the port of half of the frames:
// those that begin with 0 are looked up by mask, the others by option. What matches nothing
// goes back.

#include <core.p4>
#include <v1model.p4>

header tag_t {
    bit<8>  by_option;
    bit<16> value;
}

struct headers_t {
    tag_t tag;
}

struct metadata_t { }

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.tag);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action send(bit<9> port) {
        std.egress_spec = port;
    }
    table by_mask {
        key = { hdr.tag.value : ternary @name("value"); }
        actions = { send; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    table by_option {
        key = { hdr.tag.value : optional @name("value"); }
        actions = { send; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.tag.by_option == 0) {
            by_mask.apply();
        } else {
            by_option.apply();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FrameParser(), Verify(), ingress(), egress(), Update(), FrameDeparser()) main;
