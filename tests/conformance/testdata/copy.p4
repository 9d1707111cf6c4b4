// SPDX-License-Identifier: Apache-2.0
//
// A frame names what becomes of it: sent to a multicast group, or sent back and cloned, at
// the end of ingress or of egress, by a clone session. Every copy leaves with the replica
// number and the kind of packet that egress saw in it.

#include <core.p4>
#include <v1model.p4>

const bit<8> TO_GROUP   = 0;
const bit<8> CLONE_I2E  = 1;
const bit<8> CLONE_E2E  = 2;
const bit<32> ORIGINAL  = 0;

header order_t {
    bit<8>  what;
    bit<16> target;
    bit<16> replica;
    bit<8>  kind;
}

struct headers_t {
    order_t order;
}

struct metadata_t { }

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.order);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.order.what == TO_GROUP) {
            std.mcast_grp = hdr.order.target;
        } else if (hdr.order.what == CLONE_I2E) {
            clone(CloneType.I2E, (bit<32>)hdr.order.target);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.order.replica = std.egress_rid;
        hdr.order.kind = (bit<8>)std.instance_type;
        if (hdr.order.what == CLONE_E2E && std.instance_type == ORIGINAL) {
            clone(CloneType.E2E, (bit<32>)hdr.order.target);
        }
    }
}

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FrameParser(), Verify(), ingress(), egress(), Update(), FrameDeparser()) main;
