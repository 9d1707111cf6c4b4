// SPDX-License-Identifier: Apache-2.0
//
// A table with an action selector: frames of a class leave by one of its ports, the same for
// all frames with the same entropy. What matches nothing is dropped.

#include <core.p4>
#include <v1model.p4>

header flow_t {
    bit<8>  class;
    bit<32> entropy;
}

struct headers_t {
    flow_t flow;
}

struct metadata_t { }

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.flow);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc32, 128, 16) ways;

    action send(bit<9> port) {
        std.egress_spec = port;
    }
    table classes {
        key = {
            hdr.flow.class   : exact @name("class");
            hdr.flow.entropy : selector;
        }
        actions = { send; NoAction; }
        implementation = ways;
        size = 64;
    }
    apply {
        if (!classes.apply().hit) {
            mark_to_drop(std);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FrameParser(), Verify(), ingress(), egress(), Update(), FrameDeparser()) main;
