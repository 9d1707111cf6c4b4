// SPDX-License-Identifier: Apache-2.0
//
// Finds frames that must not go further and says why.

#ifndef HEADGATE_VALIDATE_P4
#define HEADGATE_VALIDATE_P4

control Validate(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.arrival.truncated == 1) {
            meta.drop_reason = DROP_PARSER;
        } else if (hdr.mac_control.isValid()) {
            meta.drop_reason = DROP_MAC_CONTROL;
        } else if (hdr.ipv4.isValid()) {
            // The shortest packet is its header; the longest fills the frame behind the
            // 14 bytes of Ethernet. A frame may be longer: Ethernet pads to 60 bytes.
            if (hdr.ipv4.version != 4 || hdr.ipv4.ihl < 5 || hdr.ipv4.total_len < 20 ||
                (bit<32>)hdr.ipv4.total_len + 14 > meta.bridged.frame_bytes) {
                meta.drop_reason = DROP_IPV4_HEADER;
            } else if (hdr.ipv4.ihl != 5) {
                meta.drop_reason = DROP_IPV4_OPTIONS;
            } else if (meta.arrival.bad_checksum == 1) {
                meta.drop_reason = DROP_IPV4_CHECKSUM;
            } else if (hdr.udp.isValid() &&
                       (hdr.udp.length < 8 || hdr.udp.length > hdr.ipv4.total_len - 20 ||
                        (hdr.maxqd.isValid() && hdr.udp.length < 12))) {
                // The parser may have taken Ethernet's padding for a shim.
                meta.drop_reason = DROP_UDP_LENGTH;
            } else if (hdr.maxqd.isValid() && hdr.maxqd.version != MAXQD_VERSION) {
                meta.drop_reason = DROP_MAXQD_SHIM;
            }
        }
    }
}

#endif
