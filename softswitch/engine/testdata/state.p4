// Registers of several widths, counters, hashes of all algorithms, checksums with payload.
#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> op; bit<8> idx; bit<32> a; bit<32> b; bit<16> c; bit<13> d; bit<3> e; bit<128> w; }
header maybe_t { bit<24> x; bit<8> y; }
header out_t {
    bit<16> crc16; bit<32> crc32; bit<16> csum; bit<16> xor16; bit<64> ident; bit<32> crc32c; bit<16> crc16c; bit<32> limited;
    bit<32> old; bit<128> oldw; bit<8> oldb; bit<16> check; bit<8> bad; bit<32> total;
}
struct headers_t { in_t i; maybe_t maybe; out_t o; }
struct meta_t { bit<16> csum; }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { b.extract(h.i); transition select(h.i.e) { 1: maybe; default: accept; } }
    state maybe { b.extract(h.maybe); transition accept; }
}
control V(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(h.maybe.isValid(), { h.i.a, h.i.b, h.i.w }, h.i.c, HashAlgorithm.csum16);
        verify_checksum_with_payload(h.i.op == 9, { h.i.a, h.i.b }, h.i.c, HashAlgorithm.csum16);
    }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    register<bit<32>>(16) sums;
    register<bit<128>>(4) wides;
    register<bit<7>>(256) smalls;
    register<bit<32>>(1) total;
    counter(16, CounterType.packets_and_bytes) cnt;
    action add() {
        bit<32> v;
        sums.read(v, (bit<32>)h.i.idx);
        h.o.old = v;
        sums.write((bit<32>)h.i.idx, v + h.i.a);
    }
    action addw() {
        wides.read(h.o.oldw, (bit<32>)(h.i.idx & 3));
        wides.write((bit<32>)(h.i.idx & 3), h.o.oldw ^ h.i.w);
        bit<7> s;
        smalls.read(s, (bit<32>)h.i.idx);
        h.o.oldb = (bit<8>)s;
        smalls.write((bit<32>)h.i.idx, s + 77);
    }
    apply {
        sm.egress_spec = 5;
        h.o.setValid();
        h.o.bad = (bit<8>)sm.checksum_error;
        bit<24> x = 0;
        bit<8> y = 0;
        if (h.maybe.isValid()) { x = h.maybe.x; y = h.maybe.y; } // an invalid field may hold anything
        hash(h.o.crc16, HashAlgorithm.crc16, 16w0, { h.i.a, h.i.b, h.i.d, h.i.e, x }, 32w0x10000);
        hash(h.o.crc32, HashAlgorithm.crc32, 32w0, { h.i.a, h.i.d, h.i.w, y }, 64w0x100000000);
        hash(h.o.csum, HashAlgorithm.csum16, 16w0, { h.i.a, h.i.b, h.i.c }, 32w0x10000);
        hash(h.o.xor16, HashAlgorithm.xor16, 16w0, { h.i.a, h.i.op, h.i.w }, 32w0x10000);
        hash(h.o.ident, HashAlgorithm.identity, 32w5, { h.i.op, h.i.idx, h.i.d }, 64w0xffffffffff);
        hash(h.o.crc32c, HashAlgorithm.crc32_custom, 32w0, { h.i.a, 7w5, h.i.d }, 64w0x100000000);
        hash(h.o.crc16c, HashAlgorithm.crc16_custom, 16w0, { x, h.i.b }, 32w0x10000);
        hash(h.o.limited, HashAlgorithm.crc32, (bit<32>)h.i.idx, { h.i.a, h.i.b }, (bit<32>)h.i.op);
        if (h.i.idx < 16) { add(); cnt.count((bit<32>)h.i.idx); }
        addw();
        bit<32> t;
        total.read(t, 0);
        t = t + 1;
        total.write(0, t);
        h.o.total = t;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum_with_payload(h.i.isValid(), { h.i.a, h.i.d, h.i.e, h.i.op, 8w0, h.maybe.x, h.maybe.y }, h.o.check, HashAlgorithm.csum16);
        update_checksum(h.i.op == 3, { h.i.a, h.i.b, h.i.w, h.i.op }, h.i.c, HashAlgorithm.csum16);
    }
}
control D(packet_out b, in headers_t h) { apply { b.emit(h.o); b.emit(h.i); b.emit(h.maybe); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
