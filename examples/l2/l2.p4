// A switch that sends a frame by its destination address, and everything else to all other ports.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t { ethernet_t ethernet; }
struct metadata_t { }

parser L2Parser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control L2Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) frames;

    action forward(bit<9> port) { std.egress_spec = port; }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action drop() { mark_to_drop(std); }

    table dmac {
        key = { hdr.ethernet.dst_addr : exact @name("dst_addr"); }
        actions = { forward; flood; drop; }
        default_action = drop();
        counters = frames;
        size = 1024;
    }

    apply { dmac.apply(); }
}

control L2Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std); // a flooded frame does not go back
        }
    }
}

control L2Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control L2Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control L2Deparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }

V1Switch(L2Parser(), L2Verify(), L2Ingress(), L2Egress(), L2Compute(), L2Deparser()) main;
