// A plain IPv4 router, as softswitch/engine/testdata/l3.p4 is in v1model: longest prefix match, next
// hop rewrite, both IPv4 checksums. It is the yardstick of BenchmarkL3.
#include <core.p4>
#include <bmv2/psa.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> len;
    bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t eth; ipv4_t ipv4; }
struct meta_t { bit<16> next_hop; bit<1> bad; }
struct empty_t {}

parser InParser(packet_in b, out headers_t hdr, inout meta_t m, in psa_ingress_parser_input_metadata_t istd,
                in empty_t resub, in empty_t recirc) {
    InternetChecksum() ck;
    state start {
        b.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        b.extract(hdr.ipv4);
        ck.clear();
        ck.add({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
                 hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst });
        verify(ck.get() == hdr.ipv4.checksum, error.HeaderTooShort);
        transition accept;
    }
}
control In(inout headers_t hdr, inout meta_t m, in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd) {
    action drop() { ingress_drop(ostd); }
    action set_next_hop(bit<16> id) { m.next_hop = id; }
    table routes {
        key = { hdr.ipv4.dst : lpm; }
        actions = { set_next_hop; drop; }
        default_action = drop();
        size = 131072;
    }
    action forward(bit<32> port, bit<48> src, bit<48> dst) {
        send_to_port(ostd, (PortId_t)(PortIdUint_t)port);
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
        if (!hdr.ipv4.isValid() || istd.parser_error != error.NoError || hdr.ipv4.ttl < 2) {
            drop();
        } else if (routes.apply().hit) {
            next_hops.apply();
        }
    }
}
control InDeparser(packet_out b, out empty_t clone, out empty_t resub, out empty_t normal, inout headers_t hdr, in meta_t m,
                   in psa_ingress_output_metadata_t istd) {
    InternetChecksum() ck;
    apply {
        ck.clear(); // p4c takes no condition in a deparser; without ingress_drop the header is valid
        ck.add({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
                 hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst });
        hdr.ipv4.checksum = ck.get();
        b.emit(hdr.eth);
        b.emit(hdr.ipv4);
    }
}
parser OutParser(packet_in b, out headers_t hdr, inout meta_t m, in psa_egress_parser_input_metadata_t istd, in empty_t normal,
                 in empty_t i2e, in empty_t e2e) {
    state start { transition accept; }
}
control Out(inout headers_t hdr, inout meta_t m, in psa_egress_input_metadata_t istd, inout psa_egress_output_metadata_t ostd) { apply { } }
control OutDeparser(packet_out b, out empty_t e2e, out empty_t recirc, inout headers_t hdr, in meta_t m,
                    in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) { apply { } }

IngressPipeline(InParser(), In(), InDeparser()) ip;
EgressPipeline(OutParser(), Out(), OutDeparser()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
