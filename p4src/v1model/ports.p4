// SPDX-License-Identifier: Apache-2.0
//
// Copies v1model's metadata to the pipeline's own on arrival, and back on departure.

#ifndef HEADGATE_V1MODEL_PORTS_P4
#define HEADGATE_V1MODEL_PORTS_P4

control Arrival(in headers_t hdr, inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action arrive() {
        meta.arrival.port = standard.ingress_port;
        meta.arrival.bad_checksum = standard.checksum_error;
        meta.arrival.truncated =
            (bit<1>)(standard.parser_error != error.NoError && meta.target.ports_found == 0);
        meta.bridged.frame_bytes =
            standard.packet_length - (hdr.packet_out.isValid() ? PACKET_OUT_BYTES : 0);
        // The longest packet fills the frame behind the 14 bytes of Ethernet. A frame may
        // be longer: Ethernet pads to 60 bytes.
        meta.arrival.beyond_frame =
            (bit<1>)((hdr.ipv6.isValid() ? (bit<32>)hdr.ipv6.payload_len + 54
                                         : (bit<32>)hdr.ipv4.total_len + 14) > meta.bridged.frame_bytes);
        meta.drop_reason = DROP_NONE;
    }

    apply {
        arrive();
    }
}

// Sends the packet to its queue, or counts its drop. The counter's index is the drop reason.
control Enqueue(in metadata_t meta, inout standard_metadata_t standard) {
    @id(ID_COUNTER_DROPS)
    @name(".ingress.drops")
    counter(DROP_REASON_CELLS, CounterType.packets_and_bytes) drops;

    apply {
        if (meta.drop_reason == DROP_NONE) {
            standard.egress_spec = meta.egress_port;
            standard.priority = meta.bridged.queue;
        } else {
            drops.count((bit<32>)meta.drop_reason);
            mark_to_drop(standard);
        }
    }
}

// Queue depths in bytes come from accounting.p4, because simple_switch counts packets.
control Departure(inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action depart() {
        meta.departure.port = standard.egress_port;
        meta.departure.delay = standard.deq_timedelta;
        meta.departure.queue_empty = (bit<1>)(standard.deq_qdepth == 0);
        random(meta.departure.draw, 16w0, 16w0xffff);
    }

    apply {
        depart();
    }
}

// Counts, by port, packets that this switch marked CE.
control CountMarks(in metadata_t meta) {
    @id(ID_COUNTER_ECN_MARKS)
    @name(".egress.ecn_marks")
    counter(PORT_CELLS, CounterType.packets_and_bytes) ecn_marks;

    apply {
        if (meta.marked == 1) {
            ecn_marks.count((bit<32>)meta.departure.port);
        }
    }
}

#endif
