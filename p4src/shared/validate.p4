// SPDX-License-Identifier: Apache-2.0
//
// Finds frames that must not go further and says why.

#ifndef HEADGATE_VALIDATE_P4
#define HEADGATE_VALIDATE_P4

// A chip compares few bits with a constant, and not two fields: what is above a bound is
// what a saturating subtraction leaves.
#define SHORTER(length, n) (length[15:5] == 0 && length[4:0] < n)

control Validate(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action measure_payload() {
        meta.payload_len = hdr.ipv4.total_len - 20;
    }

    @hidden
    action compare_lengths() {
        meta.excess_len = hdr.udp.length |-| meta.payload_len;
    }

    apply {
        if (hdr.udp.isValid()) {
            measure_payload();
            compare_lengths();
        }
        if (meta.arrival.truncated == 1) {
            meta.drop_reason = DROP_PARSER;
        } else if (hdr.mac_control.isValid()) {
            meta.drop_reason = DROP_MAC_CONTROL;
        } else if (hdr.ipv4.isValid()) {
            // The shortest packet is its header. Conditions are short, as a chip's are.
            if (hdr.ipv4.version != 4 || hdr.ipv4.ihl < 5 || SHORTER(hdr.ipv4.total_len, 20)) {
                meta.drop_reason = DROP_IPV4_HEADER;
            } else if (meta.arrival.beyond_frame == 1) {
                meta.drop_reason = DROP_IPV4_HEADER;
            } else if (hdr.ipv4.ihl != 5) {
                meta.drop_reason = DROP_IPV4_OPTIONS;
            } else if (meta.arrival.bad_checksum == 1) {
                meta.drop_reason = DROP_IPV4_CHECKSUM;
            } else if (hdr.udp.isValid() && SHORTER(hdr.udp.length, 8)) {
                meta.drop_reason = DROP_UDP_LENGTH;
            } else if (hdr.udp.isValid() && meta.excess_len != 0) {
                meta.drop_reason = DROP_UDP_LENGTH;
            } else if (hdr.maxqd.isValid() && SHORTER(hdr.udp.length, 12)) {
                // The parser may have taken Ethernet's padding for a shim.
                meta.drop_reason = DROP_UDP_LENGTH;
            } else if (hdr.maxqd.isValid() && hdr.maxqd.version != MAXQD_VERSION) {
                meta.drop_reason = DROP_MAXQD_SHIM;
            }
        }
    }
}

#endif
