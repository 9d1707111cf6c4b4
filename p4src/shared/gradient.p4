// SPDX-License-Identifier: Apache-2.0
//
// DSH's Algorithm 3: the headroom that a queue's growth calls for, by table lookups, shifts
// and additions. It is headroom.Estimator in Go, bit by bit; the entries come from packages
// tables/log2 and tables/phi. Logarithms have 16 fractional bits.

#ifndef HEADGATE_GRADIENT_P4
#define HEADGATE_GRADIENT_P4

// ⌊x / 4⌋ of a number in two's complement of at most 30 bits: w_g = w_v = 2⁻².
#define QUARTER(x) ((((x) + 32w0x40000000) >> 2) - 32w0x10000000)

control Gradient(inout metadata_t meta) {
    @id(ID_ACTION_SET_LOG_BYTES)
    @name(".ingress.buffer.set_log_bytes")
    action set_log_bytes(@id(1) bit<32> log) {
        meta.estimate.log_bytes = log;
    }

    @id(ID_TABLE_LOG2_BYTES)
    @name(".ingress.buffer.log2_bytes")
    table log2_bytes {
        key = { meta.estimate.growth : lpm @id(1) @name("bytes"); }
        actions = { set_log_bytes; @defaultonly NoAction; }
        const default_action = NoAction();
        size = LOG_ENTRIES;
    }

    @id(ID_ACTION_SET_LOG_TICKS)
    @name(".ingress.buffer.set_log_ticks")
    action set_log_ticks(@id(1) bit<32> log) {
        meta.estimate.log_ticks = log;
    }

    @id(ID_TABLE_LOG2_TICKS)
    @name(".ingress.buffer.log2_ticks")
    table log2_ticks {
        key = { meta.estimate.elapsed : lpm @id(1) @name("ticks"); }
        actions = { set_log_ticks; @defaultonly NoAction; }
        const default_action = NoAction();
        size = LOG_ENTRIES;
    }

    // log2 g = log2 Δq − log2 Δt, and the unit of g. Below 2⁰ only the octave that rounds
    // up to 1 counts.
    @hidden
    action subtract() {
        bit<32> bytes = meta.estimate.log_bytes + meta.estimate.exponent;
        bit<32> ticks = meta.estimate.log_ticks;
        meta.estimate.fraction = (bytes < ticks) ? 1w1 : 1w0;
        meta.estimate.log_gradient = (bytes < ticks) ? ticks - bytes : bytes - ticks;
        meta.estimate.gradient = (ticks - bytes <= LOG_ONE) ? 32w1 : 32w0;
    }

    @id(ID_ACTION_SET_GRADIENT)
    @name(".ingress.buffer.set_gradient")
    action set_gradient(@id(1) bit<32> gradient) {
        meta.estimate.gradient = gradient;
    }

    // A miss is a gradient beyond every limit.
    @id(ID_TABLE_EXP2)
    @name(".ingress.buffer.exp2")
    table exp2 {
        key = { meta.estimate.log_gradient : lpm @id(1) @name("log"); }
        actions = { set_gradient; }
        const default_action = set_gradient(UNLIMITED);
        size = EXP_ENTRIES;
    }

    @hidden
    action saturate() {
        meta.estimate.gradient = meta.estimate.limit;
    }

    // Lines 3 to 6, with the signed difference of Eq. 5, and k = 2².
    @hidden
    action smooth() {
        bit<32> g = (meta.estimate.shrinks == 1) ? 0 - meta.estimate.gradient : meta.estimate.gradient;
        bit<32> difference = g - meta.estimate.average;
        bit<32> deviation = (difference[31:31] == 1) ? 0 - difference : difference;
        deviation = deviation - meta.estimate.deviation;
        meta.estimate.average = meta.estimate.average + QUARTER(difference);
        meta.estimate.deviation = meta.estimate.deviation + QUARTER(deviation);
        meta.estimate.steepness = meta.estimate.average + (meta.estimate.deviation << 2) - 1;
    }

    @id(ID_ACTION_SET_PHI)
    @name(".ingress.buffer.set_phi")
    action set_phi(@id(1) bit<32> phi) {
        meta.estimate.phi = phi;
    }

    @id(ID_TABLE_HEADROOM_FOR)
    @name(".ingress.buffer.headroom_for")
    table headroom_for {
        key = {
            meta.estimate.profile   : exact @id(1) @name("profile");
            meta.estimate.steepness : lpm @id(2) @name("gradient");
        }
        actions = { set_phi; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PHI_ENTRIES;
    }

    apply {
        // A queue has no gradient before its second packet.
        if (meta.estimate.started == 1) {
            if (meta.estimate.growth == 0) {
                meta.estimate.gradient = 0;
            } else if (meta.estimate.elapsed == 0) {
                saturate();
            } else {
                log2_bytes.apply();
                log2_ticks.apply();
                subtract();
                if (meta.estimate.fraction == 0) {
                    exp2.apply();
                    if (meta.estimate.gradient > meta.estimate.limit) {
                        saturate();
                    }
                }
            }
            smooth();
            // ĝ − 1 is negative for a queue that does not grow: it needs no headroom.
            if (meta.estimate.steepness[31:31] == 0) {
                headroom_for.apply();
            }
        }
    }
}

#endif
