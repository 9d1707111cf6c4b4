// SPDX-License-Identifier: Apache-2.0
//
// Copies TNA's metadata to the pipeline's own on arrival, and back on departure.

#ifndef HEADGATE_TNA_PORTS_P4
#define HEADGATE_TNA_PORTS_P4

control Arrival(inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t from_parser) {
    apply {
        meta.arrival.port = intrinsic.ingress_port;
        meta.bridged.ingress_port = intrinsic.ingress_port;
#if __TARGET_TOFINO__ == 1
        meta.bridged.arrived = from_parser.global_tstamp[31:0];
#endif
        if (from_parser.parser_err != PARSER_ERROR_OK) {
            meta.arrival.truncated = 1;
        }
    }
}

// Sends the packet to its queue, or counts its drop. The counter's index is the drop reason. The traffic
// manager finds the priority group by the traffic class.
control Enqueue(in headers_t hdr, inout metadata_t meta,
                inout ingress_intrinsic_metadata_for_deparser_t deparse,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    @id(ID_COUNTER_DROPS)
    @name(".ingress.drops")
    Counter<bit<64>, drop_reason_t>(DROP_REASON_CELLS, CounterType_t.PACKETS_AND_BYTES) drops;

    @hidden
    action enqueue() {
        tm.ucast_egress_port = meta.egress_port;
        tm.qid = (QueueId_t)meta.bridged.queue;
        tm.ingress_cos = meta.bridged.traffic_class;
    }

    @hidden
    action drop() {
        drops.count(meta.drop_reason, FCS_BYTES);
        deparse.drop_ctl = DROP_PACKET;
    }

    apply {
        if (meta.drop_reason == DROP_NONE) {
            enqueue();
            if (meta.learn == 1) {
                if (hdr.ipv6.isValid()) {
                    deparse.digest_type = DIGEST_FLOW_IPV6;
                } else {
                    deparse.digest_type = DIGEST_FLOW;
                }
            }
            // The controller gets a packet as it arrived.
            if (!hdr.ethernet.isValid() || meta.egress_port == CPU_PORT) {
                meta.bridged.source = FROM_INGRESS_OPAQUE;
            }
        } else {
            drop();
        }
    }
}

// Counts, by port, packets that this switch marked CE.
control CountMarks(in metadata_t meta) {
    @id(ID_COUNTER_ECN_MARKS)
    @name(".egress.ecn_marks")
    Counter<bit<64>, port_id_t>(PORT_CELLS, CounterType_t.PACKETS_AND_BYTES) ecn_marks;

    apply {
        if (meta.marked == 1) {
            ecn_marks.count(meta.departure.port, EGRESS_OVERHEAD);
        }
    }
}

#endif
