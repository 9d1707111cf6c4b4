// What p4c-bm2-psa leaves out of the JSON, though it is in the P4Info: a direct counter, and the names of digests,
// which matter where two have fields of the same widths.
#include <core.p4>
#include <bmv2/psa.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { eth_t eth; }
struct empty_t {}
struct address_t { bit<48> address; }
struct port_t { bit<32> port; }

parser InParser(packet_in p, out headers_t hdr, inout empty_t meta, in psa_ingress_parser_input_metadata_t istd,
                in empty_t resub, in empty_t recirc) {
    state start { p.extract(hdr.eth); transition accept; }
}

control In(inout headers_t hdr, inout empty_t meta, in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd) {
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) hits;
    Digest<address_t>() from;
    Digest<address_t>() to;
    Digest<port_t>() by;
    action to_port(bit<32> port) { send_to_port(ostd, (PortId_t)(PortIdUint_t)port); hits.count(); }
    table counted {
        key = { hdr.eth.dst : exact; }
        actions = { to_port; NoAction; }
        psa_direct_counter = hits;
    }
    apply {
        from.pack({ hdr.eth.src });
        to.pack({ hdr.eth.dst });
        by.pack({ (bit<32>)(PortIdUint_t)istd.ingress_port });
        counted.apply();
    }
}

control InDeparser(packet_out p, out empty_t clone, out empty_t resub, out empty_t normal, inout headers_t hdr, in empty_t meta,
                   in psa_ingress_output_metadata_t istd) {
    apply { p.emit(hdr.eth); }
}

parser OutParser(packet_in p, out headers_t hdr, inout empty_t meta, in psa_egress_parser_input_metadata_t istd, in empty_t normal,
                 in empty_t i2e, in empty_t e2e) {
    state start { transition accept; }
}

control Out(inout headers_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd, inout psa_egress_output_metadata_t ostd) {
    apply { }
}

control OutDeparser(packet_out p, out empty_t e2e, out empty_t recirc, inout headers_t hdr, in empty_t meta,
                    in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply { }
}

IngressPipeline(InParser(), In(), InDeparser()) ip;
EgressPipeline(OutParser(), Out(), OutDeparser()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
