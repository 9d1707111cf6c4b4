// Headers with fields that nothing names but their type: packets that leave as they came, and
// everything that has such fields moved: headers that come and go, copies, second passes,
// parsers that lose track of headers, and checksums of whole headers.
#include <core.p4>
#include <v1model.p4>

error { Bad }

header cmd_t {
    bit<8> op; bit<8> way; bit<8> rest; bit<8> arg;
    bit<3> left; bit<1> wrong; bit<1> fail; bit<2> turn; bit<1> right; bit<8> trace;
}
header wide_t {
    bit<48> mac; bit<16> gap; bit<72> odd; bit<128> big; bit<4> left; bit<12> x; bit<4> y; bit<4> right;
    bit<5> before; bit<6> small; bit<5> behind; bit<64> low;
}
header pair_t { bit<4> a; bit<12> b; bit<16> c; bit<8> d; }
header mark_t { bit<16> type_; bit<8> user; bit<16> rid; }
header var_t { bit<8> len; varbit<64> data; bit<8> left; }
header item_t { bit<8> left; bit<7> low; bit<1> last; }
header ip_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> len; bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst;
}
header seg_t { bit<16> sum; bit<16> port; bit<4> a; bit<12> b; bit<32> num; bit<32> left; } // 14 bytes
header end_t { bit<24> left; bit<8> n; bit<16> sum; }
struct headers_t {
    mark_t mark; cmd_t cmd; wide_t wide; pair_t pair; pair_t other; pair_t third; pair_t spare; var_t var; item_t[20] items;
    ip_t ip; seg_t seg; end_t end; mark_t tail;
}
struct meta_t { @field_list(1, 2) bit<8> user; @field_list(2) bit<16> hash; }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start {
        b.extract(h.cmd);
        transition select(h.cmd.way) { 8: swapped; 9: rest; default: wide; }
    }
    state wide {
        b.extract(h.wide);
        transition select(h.cmd.way) { 1: skip; 2: var; 3: items; 4: bad; 5: wide2; 6: pairs; 7: pair; default: rest; }
    }
    state skip { b.advance((bit<32>)h.cmd.arg); transition rest; }
    state var { b.extract(h.var, (bit<32>)h.cmd.arg); transition rest; }
    state items {
        b.extract(h.items.next);
        transition select(h.items.last.last) { 0: items; default: rest; }
    }
    state bad { verify(h.cmd.arg < 10, error.Bad); transition rest; }
    state wide2 { b.extract(h.wide); transition rest; }
    state pairs { b.extract(h.pair); b.extract(h.other); transition rest; }
    state pair { b.extract(h.pair); b.extract(h.third); transition rest; }
    state swapped { b.extract(h.ip); b.extract(h.wide); transition accept; } // the deparser has another order
    state rest {
        transition select(h.cmd.rest) { 0: accept; 3: seg; 4: end; default: ip; }
    }
    state ip { b.extract(h.ip); transition select(h.cmd.rest) { 1: accept; default: seg; } }
    state seg { b.extract(h.seg); transition select(h.cmd.rest) { 2: accept; default: end; } }
    state end { b.extract(h.end); transition accept; }
}
control V(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.dscp, h.ip.ecn, h.ip.len, h.ip.id, h.ip.flags, h.ip.frag, h.ip.ttl, h.ip.proto,
              h.ip.src, h.ip.dst }, h.ip.sum, HashAlgorithm.csum16);
        verify_checksum(h.seg.isValid(), { h.seg.port, h.seg.a, h.seg.b, h.seg.num, h.seg.left }, h.seg.sum, HashAlgorithm.csum16);
        verify_checksum(true, { h.end.left, h.end.n }, h.end.sum, HashAlgorithm.csum16);
    }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    action mark(bit<8> user) { h.mark.setValid(); h.mark.type_ = 0x1234; h.mark.user = user; h.mark.rid = 0; }
    action tail(bit<8> user) { h.tail.setValid(); h.tail.type_ = 0x5678; h.tail.user = user; h.tail.rid = 1; }
    action spare() { h.pair.setInvalid(); h.spare.setValid(); h.spare.a = 1; h.spare.b = 2; h.spare.c = 3; h.spare.d = h.cmd.arg; }
    action reply() { // writes most of one header and a little of others
        h.seg.port = h.seg.port + 1; h.seg.a = 9; h.seg.b = 0x123; h.seg.num = 0; h.wide.gap = 0x4567; h.cmd.arg = 2;
    }
    apply {
        sm.egress_spec = 3;
        if (!h.cmd.isValid()) { exit; }
        m.user = m.user + h.cmd.arg;
        if (sm.checksum_error == 1) { h.cmd.wrong = 1; }
        if (sm.parser_error != error.NoError) { h.cmd.fail = 1; }
        bool wide = h.wide.isValid();
        if (h.cmd.op == 1 && wide) { h.wide.small = (bit<6>)h.cmd.arg; }
        else if (h.cmd.op == 2 && wide) { h.wide.x = 0xabc; h.wide.y = h.cmd.arg[3:0]; }
        else if (h.cmd.op == 3 && wide) { h.wide.mac = 0x010203040506; }
        else if (h.cmd.op == 4 && wide) { h.wide.odd = h.wide.odd + 1; }
        else if (h.cmd.op == 5) { mark(1); }
        else if (h.cmd.op == 6) { tail(2); }
        else if (h.cmd.op == 7) { h.pair.setInvalid(); h.var.setInvalid(); }
        else if (h.cmd.op == 8) { mark(3); h.pair.setInvalid(); }
        else if (h.cmd.op == 9) { spare(); }
        else if (h.cmd.op == 10) { h.spare = h.third; }
        else if (h.cmd.op == 11 && h.pair.isValid() && h.other.isValid() && h.pair == h.other) { h.cmd.trace = 0x11; }
        else if (h.cmd.op == 12 && h.ip.isValid()) { h.ip.ttl = h.ip.ttl - 1; }
        else if (h.cmd.op == 13 && h.ip.isValid()) { h.ip.ttl = h.ip.ttl - 1; mark(4); }
        else if (h.cmd.op == 14) { clone_preserving_field_list(CloneType.I2E, 5, 1); h.cmd.trace = 0x14; }
        else if (h.cmd.op == 15) { clone(CloneType.I2E, 6); mark(5); }
        else if (h.cmd.op == 16) { sm.mcast_grp = 1; }
        else if (h.cmd.op == 17) { if (sm.instance_type == 0) { resubmit_preserving_field_list(2); } h.cmd.trace = m.user; }
        else if (h.cmd.op == 18) { truncate((bit<32>)h.cmd.arg); }
        else if (h.cmd.op == 19 && h.seg.isValid()) { h.cmd.trace = h.seg.sum[7:0]; h.seg.b = h.seg.b + 1; }
        else if (h.cmd.op == 20 && wide) { hash(m.hash, HashAlgorithm.crc16, 16w0, { h.wide.low, h.wide.behind, 3w0 }, 32w0x10000); h.cmd.trace = m.hash[7:0]; }
        else if (h.cmd.op == 21 && h.end.isValid()) { h.end.n = h.end.n + 1; }
        else if (h.cmd.op == 22 && h.items[1].isValid()) { h.items.pop_front(1); }
        else if (h.cmd.op == 23 && wide) { sm.mcast_grp = 1; h.wide.small = 1; tail(6); }
        else if (h.cmd.op == 24) { h.ip.setInvalid(); h.wide.setInvalid(); }
        else if (h.cmd.op == 25) { h.wide.setInvalid(); h.wide.setValid(); h.wide.small = 3; } // BMv2 makes it zero
        else if (h.cmd.op == 26 && h.seg.isValid() && wide) { reply(); }
        else if (h.cmd.op == 27 && wide) { h.wide.left = 5; }
        else if (h.cmd.op == 28 && h.seg.isValid() && wide) { reply(); clone(CloneType.I2E, 5); }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    action mark() { h.mark.setValid(); h.mark.type_ = (bit<16>)sm.instance_type; h.mark.user = m.user; h.mark.rid = sm.egress_rid; }
    apply {
        if (!h.cmd.isValid()) { exit; }
        if (sm.instance_type == 2) { h.cmd.trace = h.cmd.trace + m.user; if (h.cmd.arg > 99) { mark(); } }
        else if (sm.instance_type == 1) { h.cmd.trace = m.user; if (h.cmd.arg > 99) { mark(); } }
        else if (h.cmd.op == 16 && sm.egress_rid == 11) { mark(); }
        else if (h.cmd.op == 30) { clone_preserving_field_list(CloneType.E2E, 5, 1); h.cmd.trace = 0x30; }
        else if (h.cmd.op == 31) { clone(CloneType.E2E, 6); h.pair.setInvalid(); mark(); }
        else if (h.cmd.op == 32) { clone_preserving_field_list(CloneType.E2E, 5, 2); mark_to_drop(sm); }
        else if (h.cmd.op == 33 && h.cmd.turn < 3) { h.cmd.turn = h.cmd.turn + 1; recirculate_preserving_field_list(1); }
        else if (h.cmd.op == 34 && h.cmd.turn < 3) {
            h.cmd.turn = h.cmd.turn + 1;
            h.tail.setValid(); h.tail.type_ = 7; h.tail.user = m.user; h.tail.rid = 8;
            recirculate_preserving_field_list(2);
        }
        else if (h.cmd.op == 29) { h.end.setInvalid(); clone(CloneType.E2E, 5); h.seg.setInvalid(); }
        else if (h.cmd.op == 35) { truncate(20); }
        else if (h.cmd.op == 36) { truncate(40); mark(); }
    }
}
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.dscp, h.ip.ecn, h.ip.len, h.ip.id, h.ip.flags, h.ip.frag, h.ip.ttl, h.ip.proto,
              h.ip.src, h.ip.dst }, h.ip.sum, HashAlgorithm.csum16);
        update_checksum(h.seg.isValid() && h.cmd.arg != 1, { h.seg.port, h.seg.a, h.seg.b, h.seg.num, h.seg.left }, h.seg.sum, HashAlgorithm.csum16);
        update_checksum(true, { h.end.left, h.end.n }, h.end.sum, HashAlgorithm.csum16);
    }
}
control D(packet_out b, in headers_t h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
