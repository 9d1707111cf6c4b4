// Three tables to write entries to: exact, longest prefix and ternary. Made by
//   p4c-bm2-ss -o tables.json --p4runtime-files tables.p4info.txtpb tables.p4
// less source_info, program and initial_default_action.
#include <core.p4>
#include <v1model.p4>

header key_t { bit<32> a; bit<32> b; bit<32> c; }
struct headers_t { key_t key; }
struct meta_t { }

parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.key); transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    action forward(bit<9> port) { sm.egress_spec = port; }
    action mark(bit<32> value) { hdr.key.c = value; }
    table by_value { key = { hdr.key.a : exact; } actions = { forward; mark; } size = 131072; }
    table by_prefix { key = { hdr.key.a : lpm; } actions = { forward; mark; } size = 131072; }
    table by_mask { key = { hdr.key.a : ternary; hdr.key.b : ternary; } actions = { forward; mark; } size = 131072; }
    apply { by_value.apply(); by_prefix.apply(); by_mask.apply(); }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.key); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
