// SPDX-License-Identifier: Apache-2.0
//
// Sums of what left through each port, and the poll report that reads them. A packet accesses a register
// once, so a poll reads where any other packet writes.

#ifndef HEADGATE_TNA_STATISTICS_P4
#define HEADGATE_TNA_STATISTICS_P4

// A sum of 48 bits takes two registers. The lower one carries when it changes from negative to positive
// as a signed number. The number to add is negated and subtracted, because the compiler compares the
// terms of an addition as unsigned numbers.
control SumLow(in bit<1> poll, in port_id_t port, in bit<32> minus, inout bit<32> report,
               inout bit<16> carry)
              (Register<int<32>, port_id_t> sum) {
    RegisterAction<int<32>, port_id_t, bit<16>>(sum) add = {
        void apply(inout int<32> value, out bit<16> result) {
            if (value < 0 && value >= (int<32>)minus) {
                result = 1;
            } else {
                result = 0;
            }
            value = value - (int<32>)minus;
        }
    };

    RegisterAction<int<32>, port_id_t, int<32>>(sum) read = {
        void apply(inout int<32> value, out int<32> result) {
            result = value;
        }
    };

    apply {
        if (poll == 1) {
            report = (bit<32>)read.execute(port);
        } else {
            carry = add.execute(port);
        }
    }
}

control SumHigh(in bit<1> poll, in port_id_t port, in bit<16> carry, inout bit<16> report)
               (Register<bit<16>, port_id_t> sum) {
    RegisterAction<bit<16>, port_id_t, bit<16>>(sum) add = {
        void apply(inout bit<16> value) {
            value = value + carry;
        }
    };

    RegisterAction<bit<16>, port_id_t, bit<16>>(sum) read = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
        }
    };

    apply {
        if (poll == 1) {
            report = read.execute(port);
        } else {
            add.execute(port);
        }
    }
}

// The depth of one queue in bytes, at the departure of its last packet.
control LastDepth(in metadata_t meta, inout bit<32> report)
                 (Register<bit<32>, port_id_t> depth, queue_id_t queue) {
    RegisterAction<bit<32>, port_id_t, bit<32>>(depth) write = {
        void apply(inout bit<32> value) {
            value = meta.departure.queue_bytes;
        }
    };

    RegisterAction<bit<32>, port_id_t, bit<32>>(depth) read = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    apply {
        if (meta.bridged.poll == 1) {
            report = read.execute(meta.departure.port);
        } else if (meta.bridged.queue == queue) {
            write.execute(meta.departure.port);
        }
    }
}

// The last queueing delay of a port, in maxQD units.
control LastDelay(in metadata_t meta, inout bit<16> report) {
    @id(ID_REGISTER_LAST_DELAY)
    @name(".last_delay")
    Register<bit<16>, port_id_t>(PORT_CELLS) last_delay;

    RegisterAction<bit<16>, port_id_t, bit<16>>(last_delay) write = {
        void apply(inout bit<16> value) {
            value = meta.hop_qd;
        }
    };

    RegisterAction<bit<16>, port_id_t, bit<16>>(last_delay) read = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
        }
    };

    apply {
        if (meta.bridged.poll == 1) {
            report = read.execute(meta.departure.port);
        } else {
            write.execute(meta.departure.port);
        }
    }
}

control PortStatistics(inout headers_t hdr, inout metadata_t meta,
                       in egress_intrinsic_metadata_t intrinsic) {
    @id(ID_COUNTER_INGRESS_DEPARTURES)
    @name(".egress.ingress_departures")
    Counter<bit<64>, port_id_t>(PORT_CELLS, CounterType_t.PACKETS_AND_BYTES) ingress_departures;

    @id(ID_REGISTER_DEPARTED_BYTES_LOW)
    Register<int<32>, port_id_t>(PORT_CELLS, 0) departed_bytes_low;
    @id(ID_REGISTER_DEPARTED_BYTES_HIGH)
    Register<bit<16>, port_id_t>(PORT_CELLS, 0) departed_bytes_high;
    @id(ID_REGISTER_DEPARTED_PACKETS_LOW)
    Register<int<32>, port_id_t>(PORT_CELLS, 0) departed_packets_low;
    @id(ID_REGISTER_DEPARTED_PACKETS_HIGH)
    Register<bit<16>, port_id_t>(PORT_CELLS, 0) departed_packets_high;
    SumLow(departed_bytes_low) bytes_low;
    SumHigh(departed_bytes_high) bytes_high;
    SumLow(departed_packets_low) packets_low;
    SumHigh(departed_packets_high) packets_high;

#define DEPTH(n) \
    @id(ID_REGISTER_DEPTH_##n) \
    Register<bit<32>, port_id_t>(PORT_CELLS, 0) depth_##n; \
    LastDepth(depth_##n, n) last_depth_##n;
    DEPTH(0)
    DEPTH(1)
    DEPTH(2)
    DEPTH(3)
    DEPTH(4)
    DEPTH(5)
    DEPTH(6)
    DEPTH(7)
#undef DEPTH

    LastDelay() last_delay;

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) length;

    // The length of the frame as it arrived, with Ethernet's checksum.
    @hidden
    action measure() {
        meta.target.minus_bytes = length.get({16w0, intrinsic.pkt_length});
    }

    @hidden
    action negate(bit<32> stripped) {
        meta.target.minus_bytes = stripped - meta.target.minus_bytes;
    }

    apply {
        measure();
        if (meta.bridged.ingress_port == CPU_PORT) {
            negate(FCS_BYTES + PACKET_OUT_BYTES);
        } else {
            negate(FCS_BYTES);
        }
        bytes_low.apply(meta.bridged.poll, meta.departure.port, meta.target.minus_bytes,
                        hdr.poll_report.departed_bytes[31:0], meta.target.bytes_carry);
        bytes_high.apply(meta.bridged.poll, meta.departure.port, meta.target.bytes_carry,
                         hdr.poll_report.departed_bytes[47:32]);
        packets_low.apply(meta.bridged.poll, meta.departure.port, 0xffffffff,
                          hdr.poll_report.departed_packets[31:0], meta.target.packets_carry);
        packets_high.apply(meta.bridged.poll, meta.departure.port, meta.target.packets_carry,
                           hdr.poll_report.departed_packets[47:32]);
        last_depth_0.apply(meta, hdr.poll_report.queue_bytes_0);
        last_depth_1.apply(meta, hdr.poll_report.queue_bytes_1);
        last_depth_2.apply(meta, hdr.poll_report.queue_bytes_2);
        last_depth_3.apply(meta, hdr.poll_report.queue_bytes_3);
        last_depth_4.apply(meta, hdr.poll_report.queue_bytes_4);
        last_depth_5.apply(meta, hdr.poll_report.queue_bytes_5);
        last_depth_6.apply(meta, hdr.poll_report.queue_bytes_6);
        last_depth_7.apply(meta, hdr.poll_report.queue_bytes_7);
        last_delay.apply(meta, hdr.poll_report.last_delay);
        if (meta.bridged.poll == 0) {
            ingress_departures.count(meta.bridged.ingress_port, EGRESS_OVERHEAD);
        }
    }
}

// Turns a poll into its report. The report leaves as a mirror copy to the CPU port, and the poll itself is
// dropped. PortStatistics has set the fields of its sums.
control Poll(inout headers_t hdr, inout metadata_t meta,
             in egress_intrinsic_metadata_from_parser_t from_parser,
             inout egress_intrinsic_metadata_for_deparser_t deparse) {
    @hidden
    action report() {
        hdr.packet_in.setValid();
        hdr.packet_in.queue = HIGHEST_QUEUE;
        hdr.packet_in.reason = PACKET_IN_POLL;
        hdr.poll_report.setValid();
        hdr.poll_report.follows = REPORT_ALONE;
        hdr.poll_report.time = from_parser.global_tstamp;
        hdr.poll_report.admission_drops = 0; // the traffic manager counts them
        meta.target.poll_session = (MirrorId_t)POLL_CLONE_SESSION;
        deparse.mirror_type = MIRROR_POLL;
        deparse.drop_ctl = DROP_PACKET;
#if __TARGET_TOFINO__ == 2
        deparse.mirror_io_select = 1; // mirror the packet as it leaves egress
#endif
    }

    @hidden
    action tell_port() {
        hdr.packet_in.ingress_port = meta.departure.port;
        hdr.poll_report.port = meta.departure.port;
    }

    // Two actions, because one action does not write constants and a field into one container.
    apply {
        if (meta.bridged.poll == 1) {
            report();
        }
        if (meta.bridged.poll == 1) {
            tell_port();
        }
    }
}

#endif
