// isValid() of a stack element chosen at run time, which BMv2 does not load.
#include <core.p4>
#include <v1model.p4>

header op_t { bit<8> n; bit<8> i; }
header item_t { bit<8> v; }
struct headers_t { op_t op; item_t[3] items; }
struct meta_t { }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { b.extract(h.op); transition select(h.op.n) { 0: accept; 1: one; default: two; } }
    state one { b.extract(h.items.next); transition accept; }
    state two { b.extract(h.items.next); b.extract(h.items.next); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<2> i = h.op.i[1:0];
        if (h.items[i].isValid()) { h.op.n = h.items[i].v; } else { h.op.n = 0xff; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
