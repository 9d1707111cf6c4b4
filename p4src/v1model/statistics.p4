// SPDX-License-Identifier: Apache-2.0
//
// Departure registers of every port, and the poll report that reads them out: BMv2's
// P4Runtime server does not read registers.

#ifndef HEADGATE_V1MODEL_STATISTICS_P4
#define HEADGATE_V1MODEL_STATISTICS_P4

control PortStatistics(in metadata_t meta) {
    @hidden
    action count_departure() {
        bit<32> port = (bit<32>)meta.departure.port;
        bit<48> bytes;
        bit<48> packets;
        departed_bytes.read(bytes, port);
        departed_bytes.write(port, bytes + (bit<48>)meta.bridged.frame_bytes);
        departed_packets.read(packets, port);
        departed_packets.write(port, packets + 1);
        last_delay.write(port, meta.hop_qd);
    }

    apply {
        count_departure();
    }
}

// Turns a poll into its report. The report leaves as a clone to the CPU port; the poll
// itself ends here.
control Poll(inout headers_t hdr, in metadata_t meta, inout standard_metadata_t standard) {
    @hidden
    action report() {
        bit<32> port = (bit<32>)meta.departure.port;
        bit<32> first_queue = port << 3;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = meta.departure.port;
        hdr.packet_in.queue = meta.bridged.queue;
        hdr.packet_in.reason = PACKET_IN_POLL;
        hdr.poll_report.setValid();
        hdr.poll_report.reserved = 0;
        hdr.poll_report.port = meta.departure.port;
        hdr.poll_report.time = standard.egress_global_timestamp;
        last_delay.read(hdr.poll_report.last_delay, port);
        departed_bytes.read(hdr.poll_report.departed_bytes, port);
        departed_packets.read(hdr.poll_report.departed_packets, port);
        admission_drops.read(hdr.poll_report.admission_drops, port);
        queue_bytes.read(hdr.poll_report.queue_bytes_0, first_queue);
        queue_bytes.read(hdr.poll_report.queue_bytes_1, first_queue + 1);
        queue_bytes.read(hdr.poll_report.queue_bytes_2, first_queue + 2);
        queue_bytes.read(hdr.poll_report.queue_bytes_3, first_queue + 3);
        queue_bytes.read(hdr.poll_report.queue_bytes_4, first_queue + 4);
        queue_bytes.read(hdr.poll_report.queue_bytes_5, first_queue + 5);
        queue_bytes.read(hdr.poll_report.queue_bytes_6, first_queue + 6);
        queue_bytes.read(hdr.poll_report.queue_bytes_7, first_queue + 7);
        clone(CloneType.E2E, POLL_CLONE_SESSION);
        mark_to_drop(standard);
    }

    apply {
        report();
    }
}

#endif
