// SPDX-License-Identifier: Apache-2.0
//
// DSH's Algorithm 3: the headroom for a queue's growth, by table lookups, shifts and additions.
// The Go type headroom.Estimator computes the same bits; estimate.p4 has the tables. A miss in
// exp2 means a gradient above every threshold.

#ifndef HEADGATE_V1MODEL_GRADIENT_P4
#define HEADGATE_V1MODEL_GRADIENT_P4

// ⌊x / 4⌋ of a number in two's complement of at most 30 bits: w_g = w_v = 2⁻².
#define QUARTER(x) ((((x) + 32w0x40000000) >> 2) - 32w0x10000000)

control Gradient(inout metadata_t meta) {
    Log2Bytes() log2_bytes;
    Log2Ticks() log2_ticks;
    Exp2() exp2;
    HeadroomFor() headroom_for;

    // log2 g = log2 Δq − log2 Δt, scaled to the unit of g. Results in [−1, 0) round up to 2⁰;
    // smaller ones count as no growth.
    @hidden
    action subtract() {
        bit<32> bytes = meta.estimate.log_bytes + meta.estimate.exponent;
        bit<32> ticks = meta.estimate.log_ticks;
        meta.estimate.fraction = (bytes < ticks) ? 1w1 : 1w0;
        meta.estimate.log_gradient = (bytes < ticks) ? ticks - bytes : bytes - ticks;
        meta.estimate.gradient = (ticks - bytes <= LOG_ONE) ? 32w1 : 32w0;
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

    apply {
        // A queue has no gradient before its second packet.
        if (meta.estimate.started == 1) {
            if (meta.estimate.growth == 0) {
                meta.estimate.gradient = 0;
            } else if (meta.estimate.elapsed == 0) {
                saturate();
            } else {
                log2_bytes.apply(meta);
                log2_ticks.apply(meta);
                subtract();
                if (meta.estimate.fraction == 0) {
                    exp2.apply(meta);
                    if (meta.estimate.gradient > meta.estimate.limit) {
                        saturate();
                    }
                }
            }
            smooth();
            // ĝ − 1 is negative for a queue that does not grow: it needs no headroom.
            if (meta.estimate.steepness[31:31] == 0) {
                headroom_for.apply(meta.estimate.profile, meta.estimate.steepness, meta.estimate.phi);
            }
        }
    }
}

#endif
