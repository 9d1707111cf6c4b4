// SPDX-License-Identifier: Apache-2.0
//
// Finds frames that must be dropped, and the reason.

#ifndef HEADGATE_VALIDATE_P4
#define HEADGATE_VALIDATE_P4

// A chip compares few bits with a constant, and it does not compare two fields. So conditions are
// short, and a saturating subtraction finds what exceeds a bound.
#define SHORTER(length, n) (length[15:5] == 0 && length[4:0] < n)

control Validate(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action measure_payload() {
        meta.payload_len = hdr.ipv4.total_len - 20;
    }

    @hidden
    action measure_payload_ipv6() {
        meta.payload_len = hdr.ipv6.payload_len;
    }

    @hidden
    action compare_lengths() {
        meta.excess_len = hdr.udp.length |-| meta.payload_len;
    }

    apply {
        if (hdr.udp.isValid()) {
            if (hdr.ipv6.isValid()) {
                measure_payload_ipv6();
            } else {
                measure_payload();
            }
            compare_lengths();
        }
        if (meta.arrival.truncated == 1) {
            meta.drop_reason = DROP_PARSER;
        } else if (hdr.mac_control.isValid()) {
            meta.drop_reason = DROP_MAC_CONTROL;
        } else if (hdr.ipv4.isValid()) {
            // The shortest packet is its header.
            if (hdr.ipv4.version != 4 || hdr.ipv4.ihl < 5 || SHORTER(hdr.ipv4.total_len, 20)) {
                meta.drop_reason = DROP_IPV4_HEADER;
            } else if (meta.arrival.beyond_frame == 1) {
                meta.drop_reason = DROP_IPV4_HEADER;
            } else if (hdr.ipv4.ihl != 5) {
                meta.drop_reason = DROP_IPV4_OPTIONS;
            } else if (meta.arrival.bad_checksum == 1) {
                meta.drop_reason = DROP_IPV4_CHECKSUM;
            }
        } else if (hdr.ipv6.isValid()) {
            if (hdr.ipv6.version != 6 || meta.arrival.beyond_frame == 1) {
                meta.drop_reason = DROP_IPV6_HEADER;
            }
        }
        // An invalid IP header has no UDP header behind it that counts.
        if (meta.drop_reason == DROP_NONE && hdr.udp.isValid()) {
            if (SHORTER(hdr.udp.length, 8)) {
                meta.drop_reason = DROP_UDP_LENGTH;
            } else if (meta.excess_len != 0) {
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
