// SPDX-License-Identifier: Apache-2.0
//
// Recognises packets to the shim's UDP port that carry no shim. The port is in the dynamic range,
// so any application may have it. A shim is followed by a transport header with 48 constant
// bits; other packets are forwarded unchanged.

#ifndef HEADGATE_V1MODEL_FOREIGN_P4
#define HEADGATE_V1MODEL_FOREIGN_P4

// Runs before Validate, which then checks only IPv4 and UDP of such packets.
control Foreign(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.udp.isValid() && hdr.udp.dst_port == UDP_PORT_MAXQD &&
            !(hdr.bth.isValid() && hdr.udp.length >= SHIM_DATAGRAM_BYTES &&
              hdr.maxqd.version == MAXQD_VERSION && hdr.maxqd.reserved == 0 &&
              hdr.maxqd.next_header == MAXQD_NEXT_BTH &&
              hdr.bth.version == 0 && hdr.bth.partition_key == DEFAULT_PARTITION_KEY &&
              hdr.bth.reserved_1 == 0 && hdr.bth.reserved_2 == 0)) {
            meta.target.foreign = 1;
            // The parser may have run out of bytes in the shim; the UDP header is complete.
            meta.arrival.truncated = 0;
        }
    }
}

// Runs after Validate and clears the drop that Validate set because of the shim.
control ClearShimDrop(in headers_t hdr, inout metadata_t meta) {
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
