// SPDX-License-Identifier: Apache-2.0
//
// Every frame goes back; the source addresses that the table does not know are told to the
// controller by digest, those that it knows age.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

struct learned_t {
    bit<48> station;
    bit<9>  port;
}

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action learn() {
        digest<learned_t>(1, { hdr.ethernet.src, std.ingress_port });
    }
    table stations {
        key = { hdr.ethernet.src : exact @name("station"); }
        actions = { learn; NoAction; }
        default_action = learn();
        support_timeout = true;
        size = 1024;
    }
    apply {
        std.egress_spec = std.ingress_port;
        stations.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FrameParser(), Verify(), ingress(), egress(), Update(), FrameDeparser()) main;
