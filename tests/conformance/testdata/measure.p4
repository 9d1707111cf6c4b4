// SPDX-License-Identifier: Apache-2.0
//
// Every frame goes back unchanged and is measured on the way: counted in a table by its
// length, and metered in a table by the port it came from; red frames are dropped.

#include <core.p4>
#include <v1model.p4>

struct headers_t { }

struct metadata_t {
    bit<2> colour;
}

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) by_length;
    direct_meter<bit<2>>(MeterType.packets) by_port;

    action note() { }
    table lengths {
        key = { std.packet_length : exact @name("length"); }
        actions = { note; NoAction; }
        default_action = NoAction();
        counters = by_length;
        size = 64;
    }
    action colour() {
        by_port.read(meta.colour);
    }
    table ports {
        key = { std.ingress_port : exact @name("port"); }
        actions = { colour; NoAction; }
        default_action = NoAction();
        meters = by_port;
        size = 16;
    }
    apply {
        std.egress_spec = std.ingress_port;
        lengths.apply();
        ports.apply();
        if (meta.colour == 2) {
            mark_to_drop(std);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }

control FrameDeparser(packet_out packet, in headers_t hdr) { apply { } }

V1Switch(FrameParser(), Verify(), ingress(), egress(), Update(), FrameDeparser()) main;
