// The router of softswitch/engine/testdata/l3.p4 for DPDK's SWX pipeline: p4c's DPDK backend
// takes PSA alone, fields of whole bytes, and a checksum of a header as a whole. It does the same:
// verifies and makes both checksums anew, matches, decrements, rewrites.
#include <core.p4>
#include <psa.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<8> version_ihl; bit<8> tos; bit<16> len;
    bit<16> id; bit<16> flags_frag;
    bit<8> ttl; bit<8> proto; bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t eth; ipv4_t ipv4; }
struct meta_t { bit<16> next_hop; bit<16> sum; }
struct empty_t {}

const bit<16> VALID = 0xffff; // what DPDK says in place of 0

parser P(packet_in b, out headers_t hdr, inout meta_t m, in psa_ingress_parser_input_metadata_t i,
         in empty_t resubmitted, in empty_t recirculated) {
    InternetChecksum() ck;
    state start {
        b.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        b.extract(hdr.ipv4);
        ck.clear();
        ck.add(hdr.ipv4);
        m.sum = ck.get();
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
    action drop() { ingress_drop(o); }
    action set_next_hop(bit<16> id) { m.next_hop = id; }
    table routes {
        key = { hdr.ipv4.dst : lpm; }
        actions = { set_next_hop; drop; }
        default_action = drop();
        size = 131072;
    }
    action forward(PortId_t port, bit<48> src, bit<48> dst) {
        send_to_port(o, port);
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
        // p4c-dpdk fails ("Logical Expression Unroll pass failed") on the three in one condition.
        if (!hdr.ipv4.isValid()) {
            drop();
        } else if (hdr.ipv4.version_ihl == 0x45 && m.sum != VALID) {
            drop();
        } else if (hdr.ipv4.ttl < 2) {
            drop();
        } else if (routes.apply().hit) {
            next_hops.apply();
        }
    }
}
control D(packet_out b, out empty_t cloned, out empty_t resubmitted, out empty_t normal, inout headers_t hdr,
          in meta_t m, in psa_ingress_output_metadata_t o) {
    InternetChecksum() ck;
    apply {
        hdr.ipv4.checksum = 0;
        ck.clear();
        ck.add(hdr.ipv4);
        hdr.ipv4.checksum = ck.get();
        b.emit(hdr.eth);
        b.emit(hdr.ipv4);
    }
}
parser EP(packet_in b, out headers_t hdr, inout meta_t m, in psa_egress_parser_input_metadata_t i, in empty_t normal,
          in empty_t cloned, in empty_t copied) { state start { transition accept; } }
control E(inout headers_t hdr, inout meta_t m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) { apply { } }
control ED(packet_out b, out empty_t cloned, out empty_t recirculated, inout headers_t hdr, in meta_t m,
           in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) { apply { } }
IngressPipeline(P(), I(), D()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
