// Header stacks, unions, union stacks by hand, variable-length fields, lookahead, advance,
// verify and parser errors.
#include <core.p4>
#include <v1model.p4>

error { BadLabel, TooDeep }

header kind_t { bit<8> kind; bit<8> arg; }
header label_t { bit<20> label; bit<3> tc; bit<1> bos; bit<8> ttl; }
header opt_a_t { bit<8> code; bit<8> val; }
header opt_b_t { bit<8> code; bit<24> val; }
header var_t { bit<8> len; varbit<64> data; bit<8> tail; }
header var2_t { bit<4> len; bit<4> flags; varbit<120> data; }
header report_t {
    bit<32> err; bit<8> last; bit<8> size; bit<20> top; bit<4> valid; bit<8> peek; bit<32> len;
}
header_union opt_u { opt_a_t a; opt_b_t b; }
struct headers_t {
    kind_t kind; label_t[4] labels; label_t spare; opt_u opt; opt_u opt2; var_t var; var_t varcopy; var2_t var2; report_t report;
}
struct meta_t { bit<8> peek; bit<8> idx; }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start {
        b.extract(h.kind);
        transition select(h.kind.kind) {
            1: labels; 2: options; 3: var; 4: look; 5: skip; 6: var2; 7: check;
            0x40 &&& 0xf0: accept;
            0x80..0x9f: labels;
            default: accept;
        }
    }
    state labels {
        b.extract(h.labels.next);
        m.idx = (bit<8>)h.labels.lastIndex;
        verify(h.labels.last.label != 0xfffff, error.BadLabel);
        transition select(h.labels.last.bos) { 0: labels; 1: accept; }
    }
    state options {
        transition select(b.lookahead<bit<8>>()) { 1: opt_a; 2: opt_b; default: accept; }
    }
    state opt_a { b.extract(h.opt.a); transition accept; }
    state opt_b { b.extract(h.opt.b); transition accept; }
    state var {
        bit<8> n = b.lookahead<bit<8>>();
        b.extract(h.var, (bit<32>)n * 8);
        transition accept;
    }
    state var2 {
        bit<4> n = b.lookahead<bit<4>>();
        b.extract(h.var2, (bit<32>)n << 3);
        transition accept;
    }
    state look {
        m.peek = b.lookahead<kind_t>().arg;
        transition select(b.lookahead<bit<16>>()[7:0], h.kind.arg) { (1, 2): labels; (3, _): options; default: accept; }
    }
    state skip { b.advance((bit<32>)h.kind.arg); b.extract(h.spare); transition accept; }
    state check { verify(h.kind.arg < 10, error.TooDeep); b.extract(h.spare); transition labels; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 3;
        h.report.setValid();
        if (sm.parser_error == error.NoError) { h.report.err = 0; }
        else if (sm.parser_error == error.PacketTooShort) { h.report.err = 1; }
        else if (sm.parser_error == error.StackOutOfBounds) { h.report.err = 2; }
        else if (sm.parser_error == error.BadLabel) { h.report.err = 3; }
        else if (sm.parser_error == error.TooDeep) { h.report.err = 4; }
        else if (sm.parser_error == error.HeaderTooShort) { h.report.err = 5; }
        else if (sm.parser_error == error.ParserInvalidArgument) { h.report.err = 6; }
        else { h.report.err = 7; }
        h.report.size = (bit<8>)h.labels.size;
        h.report.last = m.idx;
        h.report.peek = m.peek;
        h.report.len = sm.packet_length;
        h.report.valid[0:0] = (bit<1>)h.labels[0].isValid();
        h.report.valid[1:1] = (bit<1>)h.labels[3].isValid();
        h.report.valid[2:2] = (bit<1>)h.opt.isValid();
        h.report.valid[3:3] = (bit<1>)h.var.isValid();
        if (h.labels[0].isValid()) { h.report.top = h.labels[0].label; }
        bit<2> i = h.kind.arg[1:0];
        if (h.kind.kind == 1) {
            if (h.kind.arg[7:4] == 1) { h.labels.push_front(1); h.labels[0].setValid(); h.labels[0] = { 77, 1, 0, 64 }; }
            else if (h.kind.arg[7:4] == 2) { h.labels.push_front(2); h.labels[0].setValid(); h.labels[0].label = 5; h.labels[1].setValid(); h.labels[1].bos = 0; }
            else if (h.kind.arg[7:4] == 3) { h.labels.pop_front(1); }
            else if (h.kind.arg[7:4] == 4) { h.labels.pop_front(3); }
            else if (h.kind.arg[7:4] == 5) { h.labels[i].setInvalid(); }
            else if (h.kind.arg[7:4] == 6 && h.labels[0].isValid() && (bit<8>)i <= m.idx) { h.labels[i].ttl = h.labels[i].ttl - 1; h.spare = h.labels[i]; }
            else if (h.kind.arg[7:4] == 7 && h.labels[1].isValid()) { h.labels[i].label = h.labels[0].label + (bit<20>)h.labels[1].ttl; }
            else if (h.kind.arg[7:4] == 8) { h.labels[1] = h.labels[0]; }
            else if (h.kind.arg[7:4] == 9 && h.labels[0] == h.labels[1]) { h.report.top = 0xabcde; }
        }
        if (h.kind.kind == 2) {
            if (h.kind.arg == 1) { h.opt2 = h.opt; }
            else if (h.kind.arg == 2) { h.opt.a.setValid(); h.opt.a.code = 9; h.opt.a.val = 8; }
            else if (h.kind.arg == 3) { h.opt.b.setValid(); h.opt.b.code = 7; h.opt.b.val = 0x010203; }
            else if (h.kind.arg == 4) { h.opt.a.setInvalid(); }
        }
        if (h.kind.kind == 3) {
            if (h.kind.arg == 1) { h.varcopy = h.var; }
            else if (h.kind.arg == 2) { h.var.setInvalid(); }
            else if (h.kind.arg == 3) { h.var.tail = 0xee; h.varcopy.setValid(); h.varcopy.len = 1; h.varcopy.tail = 2; }
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply { if (h.kind.kind == 5) { h.report.len = sm.packet_length; } }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t h) {
    apply {
        b.emit(h.report); b.emit(h.kind); b.emit(h.labels); b.emit(h.spare); b.emit(h.opt); b.emit(h.opt2);
        b.emit(h.var); b.emit(h.varcopy); b.emit(h.var2);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
