// An action profile, which p4c-bm2-psa leaves out of the JSON, though it is in the P4Info.
#include <core.p4>
#include <bmv2/psa.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { eth_t eth; }
struct empty_t {}

parser InParser(packet_in p, out headers_t hdr, inout empty_t meta, in psa_ingress_parser_input_metadata_t istd,
                in empty_t resub, in empty_t recirc) {
    state start { p.extract(hdr.eth); transition accept; }
}

control In(inout headers_t hdr, inout empty_t meta, in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd) {
    ActionProfile(16) members;
    action to_port(bit<32> port) { send_to_port(ostd, (PortId_t)(PortIdUint_t)port); }
    table spread {
        key = { hdr.eth.dst : exact; }
        actions = { to_port; NoAction; }
        psa_implementation = members;
    }
    apply { spread.apply(); }
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
