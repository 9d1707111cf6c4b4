// The ways of a packet through PSA, and its externs. The field op chooses one.
#include <core.p4>
#include <bmv2/psa.p4>

header test_t {
    bit<48> dst;
    bit<8>  op;
    bit<8>  a;
    bit<16> b;
    bit<16> c;
    bit<16> sum;
    bit<32> port;
    bit<16> path;
}

struct headers_t { test_t test; }
struct empty_t {}
struct meta_t { bit<16> digest; }

parser InParser(packet_in p, out headers_t hdr, inout meta_t meta,
                     in psa_ingress_parser_input_metadata_t istd, in empty_t resub, in empty_t recirc) {
    state start { p.extract(hdr.test); transition accept; }
}

control In(inout headers_t hdr, inout meta_t meta,
                in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd) {
    Register<bit<16>, bit<8>>(16) totals;
    Counter<bit<32>, bit<8>>(16, PSA_CounterType_t.PACKETS_AND_BYTES) seen;
    Meter<bit<8>>(4, PSA_MeterType_t.PACKETS) rate;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc;
    Random<bit<16>>(10, 20) dice;

    action to_port() { send_to_port(ostd, (PortId_t)(PortIdUint_t)hdr.test.a); }
    action to_group() { multicast(ostd, (MulticastGroup_t)(MulticastGroupUint_t)hdr.test.a); }
    action clone_and_send() {
        ostd.clone = true;
        ostd.clone_session_id = (CloneSessionId_t)(CloneSessionIdUint_t)hdr.test.a;
        send_to_port(ostd, (PortId_t)(PortIdUint_t)hdr.test.b);
        hdr.test.c = 0xc0c0;
    }
    action resubmit() { ostd.drop = false; ostd.resubmit = true; }
    action recirculate() { send_to_port(ostd, PSA_PORT_RECIRCULATE); }
    action total() {
        bit<16> sum = totals.read(hdr.test.a);
        sum = sum + hdr.test.b;
        totals.write(hdr.test.a, sum);
        hdr.test.c = sum;
        seen.count(hdr.test.a);
        to_port();
    }
    action hash() { hdr.test.b = crc.get_hash({ hdr.test.dst, hdr.test.a }); to_port(); }
    action hash_mod() { hdr.test.b = crc.get_hash(16w100, { hdr.test.dst, hdr.test.a }, 16w7); to_port(); }
    action roll() {
        hdr.test.b = dice.read();
        if (hdr.test.b >= 10 && hdr.test.b <= 20) { hdr.test.b = 1; }
        to_port();
    }
    action colour() {
        PSA_MeterColor_t color = rate.execute(8w1);
        hdr.test.b = 0;
        if (color == PSA_MeterColor_t.GREEN) { hdr.test.b = 1; }
        if (color == PSA_MeterColor_t.YELLOW) { hdr.test.b = 2; }
        if (color == PSA_MeterColor_t.RED) { hdr.test.b = 3; }
        to_port();
    }
    action set_c(bit<16> c) { hdr.test.c = c; }
    table entries {
        key = { hdr.test.dst : ternary; }
        actions = { set_c; NoAction; }
        default_action = NoAction;
    }
    table ways {
        key = { hdr.test.op : exact; }
        actions = { to_port; to_group; clone_and_send; resubmit; recirculate; total; hash; hash_mod; roll; colour; NoAction; }
        const default_action = NoAction;
        const entries = {
            0 : to_port();
            1 : NoAction();
            2 : to_group();
            3 : clone_and_send();
            4 : resubmit();
            5 : recirculate();
            6 : total();
            7 : hash();
            8 : hash_mod();
            9 : roll();
            10 : colour();
            11 : to_port(); // cloned in egress
        }
    }
    apply {
        hdr.test.port = (bit<32>)(PortIdUint_t)istd.ingress_port;
        bool again = istd.packet_path == PSA_PacketPath_t.RESUBMIT || istd.packet_path == PSA_PacketPath_t.RECIRCULATE;
        if (istd.parser_error != error.NoError) {
            send_to_port(ostd, (PortId_t)(PortIdUint_t)15);
        } else if (again) {
            hdr.test.b = 0xaaaa;
            to_port();
        } else {
            entries.apply();
            ways.apply();
        }
    }
}

control InDeparser(packet_out p, out empty_t clone, out empty_t resub, out empty_t normal,
                        inout headers_t hdr, in meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply { p.emit(hdr.test); }
}

parser OutParser(packet_in p, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
                    in empty_t normal, in empty_t i2e, in empty_t e2e) {
    state start { p.extract(hdr.test); transition accept; }
}

control Out(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
               inout psa_egress_output_metadata_t ostd) {
    apply {
        if (hdr.test.isValid()) {
            hdr.test.path = 0;
            if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) { hdr.test.path = 1; }
            if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) { hdr.test.path = 0x200 | (bit<16>)(EgressInstanceUint_t)istd.instance; }
            if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) { hdr.test.path = 3; }
            if (istd.packet_path == PSA_PacketPath_t.CLONE_E2E) { hdr.test.path = 4; }
            if (hdr.test.op == 11 && istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) {
                ostd.clone = true;
                ostd.clone_session_id = (CloneSessionId_t)7;
            }
            if (hdr.test.op == 13) { egress_drop(ostd); }
        }
    }
}

control OutDeparser(packet_out p, out empty_t e2e, out empty_t recirc, inout headers_t hdr, in meta_t meta,
                       in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() ck;
    apply {
        ck.clear();
        ck.add({ hdr.test.dst, hdr.test.op, hdr.test.a, hdr.test.b, hdr.test.c });
        ck.subtract({ hdr.test.c });
        hdr.test.sum = ck.get();
        p.emit(hdr.test);
    }
}

IngressPipeline(InParser(), In(), InDeparser()) ip;
EgressPipeline(OutParser(), Out(), OutDeparser()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
