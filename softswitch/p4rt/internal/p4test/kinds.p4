// One of each thing that P4Runtime can read or write, for the tests of the P4Runtime
// server. Compiled by `make` in this folder.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<3> reason;
    bit<4> pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<3> queue;
    @padding bit<4> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

@p4runtime_translation("", 32)
type bit<9> port_id_t;

struct learn_t {
    bit<48> address;
    bit<9>  port;
}

struct meta_t {
    port_id_t port;
    bit<16>   vrf;
    bit<2>    color;
    bit<16>   known;
}

parser parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) ip_types;
    state start {
        transition select(std.ingress_port) {
            510: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: ipv4;
            ip_types: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control verify_sums(inout headers_t hdr, inout meta_t meta) { apply { } }

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) hits;
    meter(8, MeterType.bytes) rates;
    register<bit<48>>(8) last;
    register<int<12>>(4) deltas;
    direct_counter(CounterType.packets_and_bytes) acl_hits;
    direct_meter<bit<2>>(MeterType.packets) acl_rate;
    action_selector(HashAlgorithm.crc16, 64, 16) ecmp;
    action_profile(4) tunnels;

    action drop() { mark_to_drop(std); }
    action forward(bit<9> port) { std.egress_spec = port; }
    action next_hop(bit<9> port, bit<48> dst) {
        std.egress_spec = port;
        hdr.ethernet.dst = dst;
    }
    action set_vrf(bit<16> vrf) { meta.vrf = vrf; }
    action acl_set(bit<2> extra) {
        acl_hits.count();
        acl_rate.read(meta.color);
        meta.color = meta.color | extra;
    }
    action learn() {
        digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port });
    }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action to_port(port_id_t port) { meta.port = port; }
    action mark(bit<16> known) { meta.known = known; }

    table port_vrf {
        key = { meta.port: exact; }
        actions = { set_vrf; NoAction; }
        const default_action = NoAction();
        size = 16;
    }
    table l2 {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; drop; @defaultonly NoAction; }
        default_action = drop();
        size = 20000;
        support_timeout = true;
    }
    table smac {
        key = { hdr.ethernet.src: exact; }
        actions = { @tableonly mark; @defaultonly learn; }
        default_action = learn();
        size = 64;
    }
    table routes {
        key = {
            meta.vrf: exact;
            hdr.ipv4.dst: lpm;
            hdr.ipv4.src: selector;
            hdr.ipv4.protocol: selector;
        }
        actions = { next_hop; drop; }
        implementation = ecmp;
        size = 1024;
    }
    table tunnel {
        key = { hdr.ipv4.protocol: exact; }
        actions = { forward; drop; }
        implementation = tunnels;
        size = 16;
    }
    table acl {
        key = {
            hdr.ethernet.ether_type: ternary;
            hdr.ipv4.ttl: range;
            hdr.ipv4.dst: optional;
            hdr.ipv4.src: lpm;
        }
        actions = { acl_set; NoAction; }
        counters = acl_hits;
        meters = acl_rate;
        size = 128;
    }
    table fixed {
        key = { hdr.ipv4.tos: ternary; hdr.ipv4.ttl: exact; }
        actions = { mark; drop; }
        const entries = {
            (0x10 &&& 0xf0, 1): mark(7);
            (_, 2): drop();
            (0x21, 2): mark(0x1234);
        }
    }
    table once {
        actions = { to_port; NoAction; }
        default_action = to_port((port_id_t) 9w3);
    }
    apply {
        hits.count((bit<32>) std.ingress_port);
        rates.execute_meter((bit<32>) std.ingress_port & 7, meta.color);
        last.write((bit<32>) std.ingress_port & 7, hdr.ethernet.src);
        int<12> d;
        deltas.read(d, 0);
        deltas.write(1, d - 1);
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        port_vrf.apply();
        fixed.apply();
        once.apply();
        smac.apply();
        acl.apply();
        l2.apply();
        if (hdr.ipv4.isValid()) {
            if (!routes.apply().hit) {
                tunnel.apply();
            }
        }
        clone(CloneType.I2E, 5);
    }
}

control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in.reason = 5;
            hdr.packet_in.pad = 0;
        }
    }
}

control compute_sums(inout headers_t hdr, inout meta_t meta) { apply { } }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(parse(), verify_sums(), ingress(), egress(), compute_sums(), deparse()) main;
