// SPDX-License-Identifier: Apache-2.0
//
// Sends a digest of a flow that is not in PACC's table. v1model sends digests from ingress
// only.

#ifndef HEADGATE_V1MODEL_LEARN_P4
#define HEADGATE_V1MODEL_LEARN_P4

control Learn(in headers_t hdr, in metadata_t meta) {
    apply {
        if (meta.learn == 1 && hdr.ipv6.isValid()) {
            digest<flow_ipv6_digest_t>(FLOW_DIGEST_RECEIVER,
                {hdr.ipv6.src_addr, hdr.ipv6.dst_addr, meta.egress_port});
        } else if (meta.learn == 1) {
            digest<flow_digest_t>(FLOW_DIGEST_RECEIVER,
                {hdr.ipv4.src_addr, hdr.ipv4.dst_addr, meta.egress_port});
        }
    }
}

#endif
