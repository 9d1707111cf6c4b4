// Everything the control plane reaches: tables of all kinds with direct counters and
// meters, an action selector, indirect meters and counters, registers, a value set, a
// digest, and tables with a time to live.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> a; bit<16> b; bit<32> c; bit<128> w; bit<8> res; }
struct headers_t { h_t h; }
struct meta_t { bit<8> color; bit<8> tag; }

parser P(packet_in b, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    value_set<bit<8>>(4) ops;
    value_set<tuple<bit<8>, bit<16>>>(4) pairs;
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) { ops: known; default: more; }
    }
    state known { m.tag = 1; transition accept; }
    state more { transition select(hdr.h.a, hdr.h.b) { pairs: paired; default: accept; } }
    state paired { m.tag = 2; transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<8>>(MeterType.bytes) colors;
    meter(8, MeterType.packets) meters;
    counter(8, CounterType.packets_and_bytes) counters;
    register<bit<48>>(8) regs;
    action_selector(HashAlgorithm.crc16, 32w64, 32w14) sel;
    action port(bit<9> p) { sm.egress_spec = p; }
    action drop() { mark_to_drop(sm); }
    action mark(bit<8> v) { hdr.h.res = v; }
    action wide(bit<128> v) { hdr.h.w = v; }
    action colored() { colors.read(m.color); }
    table exact_ { key = { hdr.h.a : exact; hdr.h.b : exact; } actions = { mark; wide; NoAction; } counters = hits; size = 16; support_timeout = true; }
    table lpm_ { key = { hdr.h.c : lpm; } actions = { mark; NoAction; } size = 1024; }
    table lpm6 { key = { hdr.h.w : lpm; hdr.h.op : exact; } actions = { mark; NoAction; } size = 1024; }
    table ternary_ { key = { hdr.h.a : ternary; hdr.h.b : ternary; hdr.h.c : ternary; } actions = { mark; NoAction; } size = 1024; }
    table range_ { key = { hdr.h.b : range; hdr.h.a : optional; } actions = { mark; NoAction; } size = 1024; }
    table metered { key = { hdr.h.a : exact; } actions = { colored; NoAction; } meters = colors; size = 16; }
    table group { key = { hdr.h.op : exact; hdr.h.c : selector; hdr.h.b : selector; } actions = { port; drop; } implementation = sel; size = 16; }
    action touch() {
        bit<48> v;
        regs.read(v, (bit<32>)hdr.h.a);
        regs.write((bit<32>)hdr.h.a, v + 1);
        counters.count((bit<32>)hdr.h.a);
        bit<8> c;
        meters.execute_meter((bit<32>)hdr.h.a, c);
        hdr.h.res = c;
    }
    apply {
        sm.egress_spec = 1;
        if (hdr.h.op == 1) { exact_.apply(); }
        else if (hdr.h.op == 2) { lpm_.apply(); }
        else if (hdr.h.op == 3) { lpm6.apply(); }
        else if (hdr.h.op == 4) { ternary_.apply(); }
        else if (hdr.h.op == 5) { range_.apply(); }
        else if (hdr.h.op == 6) { metered.apply(); hdr.h.res = m.color; }
        else if (hdr.h.op == 7) { group.apply(); }
        else if (hdr.h.op == 8) { touch(); }
        else { hdr.h.res = m.tag; }
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
