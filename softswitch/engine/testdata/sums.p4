// Checksums that the program updates one after the other, where the order shows: one sums
// what a later one changes, one depends on it.
#include <core.p4>
#include <v1model.p4>

header first_t { bit<16> x; bit<16> sum; bit<16> crc; }
header second_t { bit<16> z; bit<16> mark; }
header third_t { bit<16> p; bit<16> q; bit<16> sum; }
header fourth_t { bit<16> early; bit<16> p; bit<16> sum; }

struct headers_t { first_t first; second_t second; third_t third; fourth_t fourth; }
struct metadata_t {}

parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.first);
        packet.extract(h.second);
        packet.extract(h.third);
        packet.extract(h.fourth);
        transition accept;
    }
}

control V(inout headers_t h, inout metadata_t m) { apply {} }

control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 3; }
}

control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }

control C(inout headers_t h, inout metadata_t m) {
    apply {
        update_checksum(true, { h.second.z }, h.fourth.early, HashAlgorithm.crc16);
        update_checksum(true, { h.first.x, h.first.crc }, h.first.sum, HashAlgorithm.csum16);
        update_checksum((h.second.mark & 1) == 0, { h.third.p, h.third.q }, h.third.sum, HashAlgorithm.csum16);
        update_checksum(true, { h.fourth.early, h.fourth.p }, h.fourth.sum, HashAlgorithm.csum16);
        update_checksum(true, { h.second.z }, h.first.crc, HashAlgorithm.crc16);
        update_checksum(true, { h.second.z }, h.second.mark, HashAlgorithm.crc16);
    }
}

control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
