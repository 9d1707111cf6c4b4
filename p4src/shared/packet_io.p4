// SPDX-License-Identifier: Apache-2.0
//
// Handles packets from the controller: frames for a port, frames for the pipeline, and polls.

#ifndef HEADGATE_PACKET_IO_P4
#define HEADGATE_PACKET_IO_P4

control PacketOut(inout headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.packet_out.isValid()) {
            if (hdr.packet_out.mode == PACKET_OUT_PORT) {
                meta.egress_port = hdr.packet_out.egress_port;
                meta.bridged.queue = hdr.packet_out.queue;
                meta.decided = 1;
            } else if (hdr.packet_out.mode == PACKET_OUT_POLL) {
                meta.egress_port = hdr.packet_out.egress_port;
                meta.bridged.queue = HIGHEST_QUEUE;
                meta.bridged.poll = 1;
                meta.decided = 1;
#ifdef PIPELINE_HAS_BUFFER
            } else if (hdr.packet_out.mode == PACKET_OUT_REFRESH ||
                       hdr.packet_out.mode == PACKET_OUT_FORGET) {
                meta.egress_port = hdr.packet_out.egress_port;
                meta.bridged.queue = HIGHEST_QUEUE;
                meta.bridged.refresh = (hdr.packet_out.mode == PACKET_OUT_REFRESH) ? 1w1 : 1w0;
                meta.bridged.forget = (hdr.packet_out.mode == PACKET_OUT_FORGET) ? 1w1 : 1w0;
                meta.decided = 1;
#endif
            } else if (hdr.packet_out.mode != PACKET_OUT_PIPELINE) {
                meta.drop_reason = DROP_PACKET_OUT;
            }
            hdr.packet_out.setInvalid();
        }
    }
}

#endif
