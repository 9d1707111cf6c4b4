// SPDX-License-Identifier: Apache-2.0
//
// Packets to the shim's UDP port that are not ours: it is a port of the dynamic range, which
// any socket may be given. Ours have a shim with a transport header behind it, of which 48
// bits are always the same. Anything else is forwarded as it came.

#ifndef HEADGATE_V1MODEL_FOREIGN_P4
#define HEADGATE_V1MODEL_FOREIGN_P4

// Before Validate, which then looks at IPv4 and UDP alone.
control Foreign(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.udp.isValid() && hdr.udp.dst_port == UDP_PORT_MAXQD &&
            !(hdr.bth.isValid() && hdr.udp.length >= SHIM_DATAGRAM_BYTES &&
              hdr.maxqd.version == MAXQD_VERSION && hdr.maxqd.reserved == 0 &&
              hdr.maxqd.next_header == MAXQD_NEXT_BTH &&
              hdr.bth.version == 0 && hdr.bth.partition_key == DEFAULT_PARTITION_KEY &&
              hdr.bth.reserved_1 == 0 && hdr.bth.reserved_2 == 0)) {
            meta.target.foreign = 1;
            // It may be too short for a shim: the parser has found UDP, so no more is missing.
            meta.arrival.truncated = 0;
        }
    }
}

// Behind Validate: takes back what it has against the shim.
control Pardon(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.target.foreign == 1) {
            if (meta.drop_reason == DROP_MAXQD_SHIM ||
                (meta.drop_reason == DROP_UDP_LENGTH && hdr.udp.length >= 8 && meta.excess_len == 0)) {
                meta.drop_reason = DROP_NONE;
            }
        }
    }
}

#endif
