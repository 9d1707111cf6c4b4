// A digest for each packet, another one for packets of an EtherType, and packet I/O.
#include <core.p4>
#include <bmv2/psa.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
@controller_header("packet_in") header in_t { bit<16> ingress_port; }
@controller_header("packet_out") header out_t { bit<16> egress_port; }
struct headers_t { out_t out_hdr; in_t in_hdr; eth_t eth; }
struct empty_t {}
struct meta_t { bit<48> src; bit<32> port; }

parser InParser(packet_in p, out headers_t hdr, inout meta_t meta,
                in psa_ingress_parser_input_metadata_t istd, in empty_t resub, in empty_t recirc) {
    state start {
        transition select((PortIdUint_t)istd.ingress_port) {
            0xfffffffd : from_cpu;
            default : eth;
        }
    }
    state from_cpu { p.extract(hdr.out_hdr); transition eth; }
    state eth { p.extract(hdr.eth); transition accept; }
}

struct learn_t { bit<48> src; bit<32> port; }
struct alarm_t { bit<48> dst; }

control In(inout headers_t hdr, inout meta_t meta,
           in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd) {
    Digest<learn_t>() learn; // p4c takes it in a control only
    Digest<alarm_t>() alarm;
    action to_port(bit<32> port) { send_to_port(ostd, (PortId_t)(PortIdUint_t)port); }
    action to_cpu() {
        send_to_port(ostd, PSA_PORT_CPU);
        hdr.in_hdr.setValid();
        hdr.in_hdr.ingress_port = (bit<16>)(PortIdUint_t)istd.ingress_port;
    }
    table routes {
        key = { hdr.eth.dst : exact; }
        actions = { to_port; NoAction; }
    }
    action tell() { learn.pack({ meta.src, meta.port }); }
    apply {
        meta.src = hdr.eth.src;
        meta.port = (bit<32>)(PortIdUint_t)istd.ingress_port;
        tell();
        if (hdr.eth.type == 0x88b5) {
            alarm.pack({ hdr.eth.dst });
        }
        if (hdr.out_hdr.isValid()) {
            to_port((bit<32>)hdr.out_hdr.egress_port);
            hdr.out_hdr.setInvalid();
        } else if (!routes.apply().hit) {
            to_cpu();
        }
    }
}

control InDeparser(packet_out p, out empty_t clone, out empty_t resub, out empty_t normal,
                   inout headers_t hdr, in meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        p.emit(hdr.in_hdr);
        p.emit(hdr.eth);
    }
}

parser OutParser(packet_in p, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
                 in empty_t normal, in empty_t i2e, in empty_t e2e) {
    state start { transition accept; }
}

control Out(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
            inout psa_egress_output_metadata_t ostd) {
    apply { }
}

control OutDeparser(packet_out p, out empty_t e2e, out empty_t recirc, inout headers_t hdr, in meta_t meta,
                    in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply { }
}

IngressPipeline(InParser(), In(), InDeparser()) ip;
EgressPipeline(OutParser(), Out(), OutDeparser()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
