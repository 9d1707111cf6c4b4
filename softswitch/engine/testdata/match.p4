// Tables of every kind, with entries in the program, and the ways out of them.
#include <core.p4>
#include <v1model.p4>

header key_t { bit<8> e; bit<32> l; bit<16> t; bit<16> r; bit<12> o; bit<4> x; bit<128> w; }
header opt_t { bit<8> f; }
header out_t { bit<8> exact_; bit<8> lpm_; bit<8> ternary_; bit<8> range_; bit<8> optional_; bit<8> wide_; bit<8> mixed; bit<8> way; bit<8> valid_; }
struct headers_t { key_t key; opt_t opt; out_t o; }
struct meta_t { bit<8> v; }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { b.extract(h.key); transition select(h.key.x) { 1: opt; default: accept; } }
    state opt { b.extract(h.opt); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    action set(bit<8> v) { m.v = v; }
    action keep() { }
    action bump(bit<8> v) { m.v = m.v + v; }
    table exact_ {
        key = { h.key.e : exact; h.key.x : exact; }
        actions = { set; keep; }
        default_action = set(0xee);
        const entries = { (1, 0) : set(1); (1, 1) : set(2); (0xff, 0xf) : keep(); }
    }
    table lpm_ {
        key = { h.key.l : lpm; }
        actions = { set; }
        default_action = set(0xee);
        const entries = {
            0x0a000000 &&& 0xff000000 : set(1);
            0x0a010000 &&& 0xffff0000 : set(2);
            0x0a010100 &&& 0xffffff00 : set(3);
            0x0a010101 : set(4);
            0x80000000 &&& 0x80000000 : set(5);
        }
    }
    table mixed {
        key = { h.key.e : exact; h.key.l : lpm; }
        actions = { set; bump; }
        default_action = bump(100);
        const entries = {
            (1, 0x0a000000 &&& 0xff000000) : set(1);
            (1, 0x0a010000 &&& 0xffff0000) : set(2);
            (2, 0x0a000000 &&& 0xff000000) : bump(7);
            (2, _) : set(9);
        }
    }
    table ternary_ {
        key = { h.key.t : ternary; h.key.e : ternary; h.opt.f : ternary; }
        actions = { set; bump; }
        default_action = set(0xee);
        const entries = {
            (0x0102, 1, _) : set(1);
            (0x0100 &&& 0xff00, _, _) : set(2);
            (_, 1 &&& 3, 0) : set(3);
            (0x0005 &&& 0x000f, _, 5) : set(4);
            (_, 0x80 &&& 0x80, _) : bump(1);
            (0x1000 &&& 0xf000, 2, _) : set(6);
            (0x2000 &&& 0xf000, 3, _) : set(7);
            (0x3000 &&& 0xf000, _, 0x10 &&& 0xf0) : set(8);
            (0x4001, _, _) : set(9);
            (0x4002, _, _) : set(10);
            (0x0004 &&& 0x0004, _, _) : set(11);
        }
    }
    table range_ {
        key = { h.key.r : range; h.key.e : exact; }
        actions = { set; }
        default_action = set(0xee);
        const entries = { (10..20, 1) : set(1); (15..300, 1) : set(2); (0..9, 2) : set(3); (_, 3) : set(4); (1000..65535, 1) : set(5); }
    }
    table optional_ {
        key = { h.key.o : optional; h.key.x : exact; }
        actions = { set; }
        default_action = set(0xee);
        const entries = { (5, 0) : set(1); (_, 0) : set(2); (7, 1) : set(3); }
    }
    table wide_ {
        key = { h.key.w : lpm; }
        actions = { set; }
        default_action = set(0xee);
        const entries = {
            0x20010db8000100000000000000000001 : set(3);
            _ : set(1);
        }
    }
    table valid_ {
        key = { h.opt.isValid() : exact; h.opt.f : exact; }
        actions = { set; }
        default_action = set(0xee);
        const entries = { (true, 7) : set(1); (false, 0) : set(2); }
    }
    apply {
        sm.egress_spec = 4;
        h.o.setValid();
        m.v = 0; exact_.apply(); h.o.exact_ = m.v;
        m.v = 0; if (lpm_.apply().hit) { h.o.way = h.o.way + 1; } h.o.lpm_ = m.v;
        m.v = 1;
        switch (mixed.apply().action_run) {
            set: { h.o.way = h.o.way + 16; }
            bump: { h.o.way = h.o.way + 32; }
        }
        h.o.mixed = m.v;
        m.v = 0x40; if (!ternary_.apply().hit) { h.o.way = h.o.way + 2; } h.o.ternary_ = m.v;
        m.v = 0; range_.apply(); h.o.range_ = m.v;
        m.v = 0; optional_.apply(); h.o.optional_ = m.v;
        m.v = 0; wide_.apply(); if (m.v == 1) { h.o.way = h.o.way + 4; } else { exit; } h.o.wide_ = m.v;
        m.v = 0; valid_.apply(); h.o.valid_ = m.v;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t h) { apply { b.emit(h.o); b.emit(h.key); b.emit(h.opt); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
