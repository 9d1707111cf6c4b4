// A plain IPv4 router: longest prefix match, next hop rewrite, both IPv4 checksums. It is
// the yardstick of BenchmarkL3.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> len;
    bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t eth; ipv4_t ipv4; }
struct meta_t { bit<16> next_hop; }

parser P(packet_in b, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { b.extract(hdr.ipv4); transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    action set_next_hop(bit<16> id) { m.next_hop = id; }
    table routes {
        key = { hdr.ipv4.dst : lpm; }
        actions = { set_next_hop; drop; }
        default_action = drop();
        size = 131072;
    }
    action forward(bit<9> port, bit<48> src, bit<48> dst) {
        sm.egress_spec = port;
        hdr.eth.src = src;
        hdr.eth.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table next_hops {
        key = { m.next_hop : exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 65536;
    }
    apply {
        if (!hdr.ipv4.isValid() || sm.checksum_error == 1 || hdr.ipv4.ttl < 2) {
            drop();
        } else if (routes.apply().hit) {
            next_hops.apply();
        }
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t m) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.eth); b.emit(hdr.ipv4); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
