// The ways of a packet: clones with and without field lists, resubmission, recirculation,
// multicast, digests, truncation, dropping, exit, and jumps within actions.
#include <core.p4>
#include <v1model.p4>

header cmd_t { bit<8> op; bit<8> arg; bit<8> count; bit<8> trace; }
header info_t { bit<32> type_; bit<32> len; bit<16> port; bit<16> rid; bit<8> user; bit<8> kept; bit<16> egress; }
struct headers_t { cmd_t cmd; info_t info; }
struct meta_t {
    @field_list(1) bit<8> kept;
    @field_list(1, 2) bit<8> user;
    bit<8> lost;
    @field_list(3) bit<16> port;
}
struct learn_t { bit<8> op; bit<9> port; bit<48> pad; }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { b.extract(h.cmd); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    action decide(bit<8> v) {
        if (v > 200) { h.cmd.trace = 3; return; }
        if (v > 100) { h.cmd.trace = 2; if (v > 150) { h.cmd.trace = h.cmd.trace + 0x20; } }
        else { h.cmd.trace = 1; }
        m.lost = v;
    }
    apply {
        sm.egress_spec = (bit<9>)(h.cmd.arg & 7);
        m.kept = h.cmd.arg; m.user = m.user + 1; m.lost = 9; m.port = (bit<16>)sm.ingress_port;
        if (h.cmd.op == 1) { clone(CloneType.I2E, 5); h.cmd.trace = 0x11; }
        else if (h.cmd.op == 2) { clone_preserving_field_list(CloneType.I2E, 5, 1); h.cmd.trace = 0x12; }
        else if (h.cmd.op == 3) { if (sm.instance_type == 0) { resubmit_preserving_field_list(2); } h.cmd.trace = m.user; }
        else if (h.cmd.op == 4) { sm.mcast_grp = 1; }
        else if (h.cmd.op == 5) { mark_to_drop(sm); }
        else if (h.cmd.op == 6) { truncate((bit<32>)h.cmd.arg); }
        else if (h.cmd.op == 7) { digest<learn_t>(1, { h.cmd.op, sm.ingress_port, 48w0x010203040506 }); }
        else if (h.cmd.op == 8) { exit; }
        else if (h.cmd.op == 9) { decide(h.cmd.arg); }
        else if (h.cmd.op == 10) { sm.mcast_grp = 1; clone(CloneType.I2E, 6); mark_to_drop(sm); }
        else if (h.cmd.op == 11) { clone(CloneType.I2E, 7); mark_to_drop(sm); }
        else if (h.cmd.op == 12) { sm.mcast_grp = 99; }
        else if (h.cmd.op == 13) { if (sm.instance_type == 0) { resubmit_preserving_field_list(3); } clone(CloneType.I2E, 5); h.cmd.trace = (bit<8>)m.port; }
        h.cmd.count = h.cmd.count + 1;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        h.info.setValid();
        h.info.type_ = sm.instance_type; h.info.len = sm.packet_length; h.info.port = (bit<16>)sm.ingress_port;
        h.info.rid = sm.egress_rid; h.info.user = m.user; h.info.kept = m.kept; h.info.egress = (bit<16>)sm.egress_port;
        if (sm.instance_type == 2) { h.cmd.trace = h.cmd.trace + 0x40; truncate(30); }
        else if (h.cmd.op == 20) { clone(CloneType.E2E, 5); h.cmd.trace = 1; }
        else if (h.cmd.op == 21) { clone_preserving_field_list(CloneType.E2E, 5, 1); mark_to_drop(sm); }
        else if (h.cmd.op == 22 && h.cmd.count < 4) { recirculate_preserving_field_list(1); h.info.setInvalid(); }
        else if (h.cmd.op == 23) { mark_to_drop(sm); }
        else if (h.cmd.op == 24) { truncate(10); }
        else if (h.cmd.op == 25) { h.cmd.setInvalid(); }
        else if (h.cmd.op == 26) { clone(CloneType.E2E, 6); truncate(8); }
    }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t h) { apply { b.emit(h.info); b.emit(h.cmd); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
