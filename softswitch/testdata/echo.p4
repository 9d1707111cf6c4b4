// The program of this package's tests: it forwards by the destination's last byte, which
// entries can redirect, and writes what it saw of the queue into the frame. Compiled with
//   p4c-bm2-ss echo.p4 -o echo.json --p4runtime-files echo.p4info.txtpb
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<40> fixed;
    bit<8>  port;       // where to; 255 recirculates once, then goes to port 1; 0 drops
    bit<48> source;
    bit<16> type;
}

header report_t {
    bit<8>  queue;      // in: the queue to take
    bit<8>  rounds;     // out: 1 after a recirculation
    bit<32> enq;        // out: queueing metadata
    bit<32> delta;
    bit<16> enq_depth;
    bit<16> deq_depth;
    bit<16> ingress_port;
}

struct headers_t {
    ethernet_t ethernet;
    report_t report;
}

struct metadata_t {}

parser P(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        b.extract(h.ethernet);
        b.extract(h.report);
        transition accept;
    }
}

control C(inout headers_t h, inout metadata_t m) { apply {} }

control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action to_port(bit<9> port) { s.egress_spec = port; }
    table redirect {
        key = { h.ethernet.port : exact; }
        actions = { to_port; NoAction; }
        default_action = NoAction;
        size = 16;
    }
    apply {
        s.priority = (bit<3>) h.report.queue;
        if (h.ethernet.port == 0) {
            mark_to_drop(s);
        } else if (h.ethernet.port == 255) {
            s.egress_spec = 1;
        } else if (h.ethernet.port == 254) {
            s.egress_spec = 510;
        } else {
            s.egress_spec = (bit<9>) h.ethernet.port;
        }
        redirect.apply();
        if (h.report.rounds == 0) {
            h.report.ingress_port = (bit<16>) s.ingress_port;
        }
    }
}

control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        h.report.enq = s.enq_timestamp;
        h.report.delta = s.deq_timedelta;
        h.report.enq_depth = (bit<16>) s.enq_qdepth;
        h.report.deq_depth = (bit<16>) s.deq_qdepth;
        if (h.ethernet.port == 255) {
            h.ethernet.port = 1;
            h.report.rounds = h.report.rounds + 1;
            recirculate_preserving_field_list(0);
        }
    }
}

control D(packet_out b, in headers_t h) {
    apply {
        b.emit(h.ethernet);
        b.emit(h.report);
    }
}

V1Switch(P(), C(), I(), E(), C(), D()) main;
