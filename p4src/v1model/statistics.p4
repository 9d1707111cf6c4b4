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

// Turns a poll into its report. The report leaves as a clone to the CPU port, and the poll
// itself is dropped.
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
        hdr.poll_report.follows = REPORT_BUFFER;
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
        bit<9> paused;
        buffer_paused.read(paused, port);
        hdr.buffer_report.setValid();
        hdr.buffer_report.reserved = 0;
        // A port without departures for a period is no victim. No packet clears the state then, so the
        // poll checks it. Without SPFC the period is 0.
        bit<1>  victim;
        bit<48> end;
        spfc_victim.read(victim, port);
        spfc_period_end.read(end, port);
        hdr.buffer_report.victim =
            (paused == 0 && standard.egress_global_timestamp |-| end < meta.target.period) ? victim : 0;
        hdr.buffer_report.port_paused = paused[8:8];
        hdr.buffer_report.paused_queues = paused[7:0];
        buffer_paused_at.read(hdr.buffer_report.last_pause, port);
        buffer_port_shared.read(hdr.buffer_report.port_shared, port);
        buffer_insured.read(hdr.buffer_report.insured, port);
        buffer_private.read(hdr.buffer_report.private_0, first_queue);
        buffer_private.read(hdr.buffer_report.private_1, first_queue + 1);
        buffer_private.read(hdr.buffer_report.private_2, first_queue + 2);
        buffer_private.read(hdr.buffer_report.private_3, first_queue + 3);
        buffer_private.read(hdr.buffer_report.private_4, first_queue + 4);
        buffer_private.read(hdr.buffer_report.private_5, first_queue + 5);
        buffer_private.read(hdr.buffer_report.private_6, first_queue + 6);
        buffer_private.read(hdr.buffer_report.private_7, first_queue + 7);
        buffer_shared.read(hdr.buffer_report.shared_0, first_queue);
        buffer_shared.read(hdr.buffer_report.shared_1, first_queue + 1);
        buffer_shared.read(hdr.buffer_report.shared_2, first_queue + 2);
        buffer_shared.read(hdr.buffer_report.shared_3, first_queue + 3);
        buffer_shared.read(hdr.buffer_report.shared_4, first_queue + 4);
        buffer_shared.read(hdr.buffer_report.shared_5, first_queue + 5);
        buffer_shared.read(hdr.buffer_report.shared_6, first_queue + 6);
        buffer_shared.read(hdr.buffer_report.shared_7, first_queue + 7);
        buffer_headroom.read(hdr.buffer_report.headroom_0, first_queue);
        buffer_headroom.read(hdr.buffer_report.headroom_1, first_queue + 1);
        buffer_headroom.read(hdr.buffer_report.headroom_2, first_queue + 2);
        buffer_headroom.read(hdr.buffer_report.headroom_3, first_queue + 3);
        buffer_headroom.read(hdr.buffer_report.headroom_4, first_queue + 4);
        buffer_headroom.read(hdr.buffer_report.headroom_5, first_queue + 5);
        buffer_headroom.read(hdr.buffer_report.headroom_6, first_queue + 6);
        buffer_headroom.read(hdr.buffer_report.headroom_7, first_queue + 7);
        buffer_pools.read(hdr.buffer_report.used_private, POOL_PRIVATE);
        buffer_pools.read(hdr.buffer_report.used_shared, POOL_SHARED);
        buffer_pools.read(hdr.buffer_report.used_headroom, POOL_HEADROOM);
        buffer_pools.read(hdr.buffer_report.used_insurance, POOL_INSURANCE);
        buffer_pools.read(hdr.buffer_report.peak_private, POOL_PEAKS + POOL_PRIVATE);
        buffer_pools.read(hdr.buffer_report.peak_shared, POOL_PEAKS + POOL_SHARED);
        buffer_pools.read(hdr.buffer_report.peak_headroom, POOL_PEAKS + POOL_HEADROOM);
        buffer_pools.read(hdr.buffer_report.peak_insurance, POOL_PEAKS + POOL_INSURANCE);
        clone(CloneType.E2E, POLL_CLONE_SESSION);
        mark_to_drop(standard);
    }

    apply {
        report();
    }
}

#endif
