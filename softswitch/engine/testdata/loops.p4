// Loops in an action, one within the other: they take many more primitives than jumps.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> rows; bit<8> columns; bit<32> cells; bit<16> odd; }

struct headers_t { h_t h; }
struct metadata_t {}

parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.h);
        transition accept;
    }
}

control V(inout headers_t h, inout metadata_t m) { apply {} }

control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action count() {
        h.h.cells = 0;
        h.h.odd = 0;
        for (bit<8> i = 0; i < h.h.rows; i = i + 1) {
            if (i == 250) {
                break;
            }
            for (bit<8> j = 0; j < h.h.columns; j = j + 1) {
                h.h.cells = h.h.cells + 1;
                if (j & 1 == 0) {
                    continue;
                }
                h.h.odd = h.h.odd + 1;
            }
        }
    }
    apply {
        count();
        s.egress_spec = 3;
    }
}

control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control C(inout headers_t h, inout metadata_t m) { apply {} }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
