// SPDX-License-Identifier: Apache-2.0
//
// SPFC's meter and port state (§V-B, Fig. 10): an Ingress Rate Counter of the bytes of lossless
// classes that came in by a port and leave the switch, a Timeout Clock that ends its periods,
// and a State Holder, which is held at reset while the port has anything paused. A port of
// which C·TC/K departs within a period is a victim's. It is headroom.Meter in Go.
//
// No timer ticks in the pipeline: a period ends when the next packet finds it over. What the
// State Holder says while something is paused is not looked at (Place), and is set anew by the
// departure that resumes all.

#ifndef HEADGATE_V1MODEL_SPFC_P4
#define HEADGATE_V1MODEL_SPFC_P4

// Reads a port's meter as of now. The period after the one that is over has no departure when
// that is over, too; the clock then starts again. Threads of BMv2 see the time a little apart,
// so an end that is ahead is only wrong (of an older, longer period) when it is far ahead.
#define SPFC_READ(port, now) \
    spfc_count.read(count, port); \
    spfc_period_end.read(end, port); \
    spfc_victim.read(victim, port); \
    bool over = (now) >= end; \
    bool idle = (now) |-| end >= meta.target.period || end |-| (now) > meta.target.period << 1; \
    victim = (idle || (over && count < meta.target.depart_limit)) ? 1w0 : victim; \
    count = (idle || over) ? 0 : count; \
    end = idle ? (now) + meta.target.period : (over ? end + meta.target.period : end)

#define SPFC_WRITE(port) \
    spfc_count.write(port, count); \
    spfc_period_end.write(port, end); \
    spfc_victim.write(port, victim)

// Says of an arriving packet's port whether it is a victim's.
control PortState(inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action look() {
        bit<32> count;
        bit<48> end;
        bit<1>  victim;
        SPFC_READ((bit<32>)meta.arrival.port, standard.ingress_global_timestamp);
        SPFC_WRITE((bit<32>)meta.arrival.port);
        meta.buffer.victim = victim;
    }

    apply {
        look();
    }
}

// Counts a departure for the port that the packet came in by, after Vacate.
control PortMeter(inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action depart() {
        bit<32> count;
        bit<48> end;
        bit<1>  victim;
        SPFC_READ((bit<32>)meta.arrival.port, standard.egress_global_timestamp);
        count = count |+| meta.bridged.frame_bytes;
        victim = (meta.target.was_paused == 1) ? 1w0 : victim;
        victim = (meta.target.is_paused == 0 && count >= meta.target.depart_limit) ? 1w1 : victim;
        SPFC_WRITE((bit<32>)meta.arrival.port);
    }

    apply {
        depart();
    }
}

#endif
