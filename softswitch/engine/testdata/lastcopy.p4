// Copies the header that a parser extracted last, which p4c writes as a field named last.
#include <core.p4>
#include <v1model.p4>

header elem {
    bit<1> bos;
    bit<7> value;
}

struct metadata {
    elem kept;
}

struct headers {
    elem[3] stack;
    elem end;
}

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.stack.next);
        meta.kept = hdr.stack.last;
        transition select(hdr.stack.last.bos) {
            0: start;
            default: accept;
        }
    }
}

control V(inout headers hdr, inout metadata meta) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.end = meta.kept;
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
