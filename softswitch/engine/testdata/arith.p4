// Every operator on unsigned, signed and wide numbers. A packet carries operands; the
// results are appended.
#include <core.p4>
#include <v1model.p4>

header args_t {
    bit<32> a; bit<32> b; bit<8> sh; bit<8> c;
    int<16> s; int<16> t; int<8> u; int<8> v;
    bit<128> w; bit<128> x; int<72> y; bit<3> n; bit<5> m; bit<64> q; bit<64> r;
}
header small_t {
    bit<32> add; bit<32> sub; bit<32> mul; bit<32> and_; bit<32> or_; bit<32> xor_; bit<32> not_; bit<32> neg;
    bit<32> shl; bit<32> shr; bit<32> shlk; bit<32> shrk; bit<32> sadd; bit<32> ssub; bit<40> cat; bit<16> slice; bit<32> tern;
    bit<64> mul64; bit<64> add64; bit<64> shl64; bit<64> shr64; bit<64> div; bit<64> mod;
    bit<1> eq; bit<1> ne; bit<1> lt; bit<1> le; bit<1> gt; bit<1> ge; bit<1> both; bit<1> either;
}
header signed_t {
    int<16> add; int<16> sub; int<16> mul; int<16> neg; int<16> and_; int<16> or_; int<16> xor_; int<16> not_;
    int<16> shl; int<16> shr; int<16> sadd; int<16> ssub; int<8> narrow; int<32> wide; bit<16> cast; int<16> back;
    bit<1> eq; bit<1> ne; bit<1> lt; bit<1> le; bit<1> gt; bit<1> ge; bit<2> pad;
    int<8> sadd8; int<8> ssub8; int<16> tern;
}
header wide_t {
    bit<128> add; bit<128> sub; bit<128> mul; bit<128> and_; bit<128> or_; bit<128> xor_; bit<128> not_;
    bit<128> shl; bit<128> shr; bit<128> shlk; bit<128> shrk; bit<128> sadd; bit<128> ssub; bit<192> cat; bit<48> slice; bit<96> mid;
    bit<1> eq; bit<1> ne; bit<1> lt; bit<1> le; bit<1> gt; bit<1> ge; bit<2> pad;
    int<72> yadd; int<72> yshr; int<72> yneg; bit<128> set; bit<128> mix;
}
struct headers_t { args_t args; small_t small; signed_t sgn; wide_t wide; }
struct meta_t { bit<32> x; int<16> y; bool flag; }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { b.extract(h.args); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    action small() {
        h.small.add = h.args.a + h.args.b;
        h.small.sub = h.args.a - h.args.b;
        h.small.mul = h.args.a * h.args.b;
        h.small.and_ = h.args.a & h.args.b;
        h.small.or_ = h.args.a | h.args.b;
        h.small.xor_ = h.args.a ^ h.args.b;
        h.small.not_ = ~h.args.a;
        h.small.neg = -h.args.a;
        h.small.shl = h.args.a << h.args.sh;
        h.small.shr = h.args.a >> h.args.sh;
        h.small.shlk = h.args.a << 7;
        h.small.shrk = h.args.a >> 9;
        h.small.sadd = h.args.a |+| h.args.b;
        h.small.ssub = h.args.a |-| h.args.b;
        h.small.cat = h.args.c ++ h.args.a;
        h.small.slice = h.args.a[23:8];
        h.small.tern = h.args.a > h.args.b ? h.args.a : h.args.b + 1;
        h.small.mul64 = (bit<64>)h.args.a * (bit<64>)h.args.b;
        h.small.add64 = h.args.q + h.args.r;
        h.small.shl64 = h.args.q << h.args.sh;
        h.small.shr64 = h.args.q >> h.args.sh;
        h.small.div = h.args.q >> 3;
        h.small.mod = (h.args.q + h.args.r) >> 1;
    }
    action compare() {
        h.small.eq = (bit<1>)(h.args.a == h.args.b);
        h.small.ne = (bit<1>)(h.args.a != h.args.b);
        h.small.lt = (bit<1>)(h.args.a < h.args.b);
        h.small.le = (bit<1>)(h.args.a <= h.args.b);
        h.small.gt = (bit<1>)(h.args.a > h.args.b);
        h.small.ge = (bit<1>)(h.args.a >= h.args.b);
        h.small.both = (bit<1>)(h.args.a < 100 && h.args.b < 100);
        h.small.either = (bit<1>)(h.args.a < 100 || !(h.args.b < 100));
        h.small.shr[3:0] = 4w9;
    }
    action sgn() {
        h.sgn.add = h.args.s + h.args.t;
        h.sgn.sub = h.args.s - h.args.t;
        h.sgn.mul = h.args.s * h.args.t;
        h.sgn.neg = -h.args.s;
        h.sgn.and_ = h.args.s & h.args.t;
        h.sgn.or_ = h.args.s | h.args.t;
        h.sgn.xor_ = h.args.s ^ h.args.t;
        h.sgn.not_ = ~h.args.s;
        h.sgn.shl = h.args.s << h.args.sh;
        h.sgn.shr = h.args.s >> h.args.sh;
        h.sgn.sadd = h.args.s |+| h.args.t;
        h.sgn.ssub = h.args.s |-| h.args.t;
        h.sgn.narrow = (int<8>)h.args.s;
        h.sgn.wide = (int<32>)h.args.s;
        h.sgn.cast = (bit<16>)h.args.s;
        h.sgn.back = (int<16>)(bit<16>)h.args.a[15:0];
        h.sgn.eq = (bit<1>)(h.args.s == h.args.t);
        h.sgn.ne = (bit<1>)(h.args.s != h.args.t);
        h.sgn.lt = (bit<1>)(h.args.s < h.args.t);
        h.sgn.le = (bit<1>)(h.args.s <= h.args.t);
        h.sgn.gt = (bit<1>)(h.args.s > h.args.t);
        h.sgn.ge = (bit<1>)(h.args.s >= h.args.t);
        h.sgn.sadd8 = h.args.u |+| h.args.v;
        h.sgn.ssub8 = h.args.u |-| h.args.v;
        h.sgn.tern = h.args.s < 0 ? -h.args.s : h.args.s;
    }
    action wide() {
        h.wide.add = h.args.w + h.args.x;
        h.wide.sub = h.args.w - h.args.x;
        h.wide.mul = h.args.w * h.args.x;
        h.wide.and_ = h.args.w & h.args.x;
        h.wide.or_ = h.args.w | h.args.x;
        h.wide.xor_ = h.args.w ^ h.args.x;
        h.wide.not_ = ~h.args.w;
        h.wide.shl = h.args.w << h.args.sh;
        h.wide.shr = h.args.w >> h.args.sh;
        h.wide.shlk = h.args.w << 65;
        h.wide.shrk = h.args.w >> 65;
        h.wide.sadd = h.args.w |+| h.args.x;
        h.wide.ssub = h.args.w |-| h.args.x;
        h.wide.cat = h.args.w ++ h.args.q;
        h.wide.slice = h.args.w[87:40];
        h.wide.mid = h.args.x[111:16];
        h.wide.eq = (bit<1>)(h.args.w == h.args.x);
        h.wide.ne = (bit<1>)(h.args.w != h.args.x);
        h.wide.lt = (bit<1>)(h.args.w < h.args.x);
        h.wide.le = (bit<1>)(h.args.w <= h.args.x);
        h.wide.gt = (bit<1>)(h.args.w > h.args.x);
        h.wide.ge = (bit<1>)(h.args.w >= h.args.x);
        h.wide.yadd = h.args.y + (int<72>)h.args.s;
        h.wide.yshr = h.args.y >> h.args.sh;
        h.wide.yneg = -h.args.y;
        h.wide.set = h.args.x;
        h.wide.set[79:48] = h.args.a;
        h.wide.mix = h.args.a > h.args.b ? h.args.w : h.args.x;
    }
    apply {
        sm.egress_spec = 2;
        h.small.setValid(); small(); compare();
        h.sgn.setValid(); sgn();
        h.wide.setValid(); wide();
        h.args.n = h.args.n + 1;
        h.args.m = h.args.m - 1;
        if (h.args.s < -5 && h.args.u != -1) { h.args.c = 0xaa; }
        else if (h.args.w > 0xffffffffffffffffffff) { h.args.c = 0xbb; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
