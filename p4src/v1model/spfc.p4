// SPDX-License-Identifier: Apache-2.0
//
// SPFC's meter and port state (§V-B, Fig. 10). The Ingress Rate Counter counts departing bytes of
// lossless classes by the port at which they arrived. The Timeout Clock ends its periods. The State
// Holder stays reset while the port has a paused class. A port is a victim's if C·TC/K of its
// bytes depart within a period. The Go type headroom.Meter does the same.
//
// The pipeline has no timer, so a period ends when the next packet finds it over. ChoosePool ignores the
// State Holder while a class is paused, and the departure that resumes all classes sets it again.

#ifndef HEADGATE_V1MODEL_SPFC_P4
#define HEADGATE_V1MODEL_SPFC_P4

// Brings a port's meter up to now, in the caller's copies of its registers. If two periods have ended, the
// second had no departure, and the clock starts again. BMv2's threads read slightly different times, so an
// end more than two periods ahead of now was written under an older, longer period; nearer ones are valid.
void spfc_advance(in bit<48> now, in bit<48> period, in bit<32> limit,
                  inout bit<32> count, inout bit<48> end, inout bit<1> victim) {
    bool over = now >= end;
    bool idle = now |-| end >= period || end |-| now > period << 1;
    victim = (idle || (over && count < limit)) ? 1w0 : victim;
    count = (idle || over) ? 0 : count;
    end = idle ? now + period : (over ? end + period : end);
}

// Finds whether an arriving packet's ingress port is a victim.
control PortState(inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action look() {
        bit<32> port = (bit<32>)meta.arrival.port;
        bit<32> count;
        bit<48> end;
        bit<1>  victim;
        spfc_count.read(count, port);
        spfc_period_end.read(end, port);
        spfc_victim.read(victim, port);
        spfc_advance(standard.ingress_global_timestamp, meta.target.period, meta.target.depart_limit, count, end, victim);
        spfc_count.write(port, count);
        spfc_period_end.write(port, end);
        spfc_victim.write(port, victim);
        meta.buffer.victim = victim;
    }

    apply {
        look();
    }
}

// Counts a departure for the packet's ingress port. Runs after LeavePool.
control PortMeter(inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action depart() {
        bit<32> port = (bit<32>)meta.arrival.port;
        bit<32> count;
        bit<48> end;
        bit<1>  victim;
        spfc_count.read(count, port);
        spfc_period_end.read(end, port);
        spfc_victim.read(victim, port);
        spfc_advance(standard.egress_global_timestamp, meta.target.period, meta.target.depart_limit, count, end, victim);
        count = count |+| meta.bridged.frame_bytes;
        victim = (meta.target.was_paused == 1) ? 1w0 : victim;
        victim = (meta.target.is_paused == 0 && count >= meta.target.depart_limit) ? 1w1 : victim;
        spfc_count.write(port, count);
        spfc_period_end.write(port, end);
        spfc_victim.write(port, victim);
    }

    apply {
        depart();
    }
}

#endif
