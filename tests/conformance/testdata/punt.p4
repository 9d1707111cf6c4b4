// SPDX-License-Identifier: Apache-2.0
//
// Packets from the controller go to the port that they name, or back to the controller when
// that is 0. Frames of other ports go to the controller.

#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_out")
header to_switch_t {
    bit<9> egress_port;
    @padding bit<7> pad;
}

@controller_header("packet_in")
header to_controller_t {
    bit<9> ingress_port;
    @padding bit<7> pad;
}

struct headers_t {
    to_controller_t to_controller;
    to_switch_t     to_switch;
}

struct metadata_t { }

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: from_controller;
            default: accept;
        }
    }
    state from_controller {
        packet.extract(hdr.to_switch);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = CPU_PORT;
        if (hdr.to_switch.isValid()) {
            if (hdr.to_switch.egress_port != 0) {
                std.egress_spec = hdr.to_switch.egress_port;
            }
            hdr.to_switch.setInvalid();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == CPU_PORT) {
            hdr.to_controller.setValid();
            hdr.to_controller.ingress_port = std.ingress_port;
            hdr.to_controller.pad = 0;
        }
    }
}

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FrameParser(), Verify(), ingress(), egress(), Update(), FrameDeparser()) main;
