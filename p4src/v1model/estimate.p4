// SPDX-License-Identifier: Apache-2.0
//
// The tables of DSH's Algorithm 3: logarithms for its division, and the headroom for a gradient.
// The Go packages tables/log2 and tables/phi compute the entries, and tables/buffer installs
// them. Logarithms have 16 fractional bits. A miss changes nothing, unless the table names
// another default.

#ifndef HEADGATE_V1MODEL_ESTIMATE_P4
#define HEADGATE_V1MODEL_ESTIMATE_P4

control Log2Bytes(inout metadata_t meta) {
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

    apply {
        log2_bytes.apply();
    }
}

// Ticks are 1 µs on BMv2.
control Log2Ticks(inout metadata_t meta) {
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

    apply {
        log2_ticks.apply();
    }
}

control Exp2(inout metadata_t meta) {
    @id(ID_ACTION_SET_GRADIENT)
    @name(".ingress.buffer.set_gradient")
    action set_gradient(@id(1) bit<32> gradient) {
        meta.estimate.gradient = gradient;
    }

    @id(ID_TABLE_EXP2)
    @name(".ingress.buffer.exp2")
    table exp2 {
        key = { meta.estimate.log_gradient : lpm @id(1) @name("log"); }
        actions = { set_gradient; }
        const default_action = set_gradient(UNLIMITED);
        size = EXP_ENTRIES;
    }

    apply {
        exp2.apply();
    }
}

// steepness is ĝ − 1.
control HeadroomFor(in bit<8> profile, in bit<32> steepness, inout bit<32> headroom) {
    @id(ID_ACTION_SET_PHI)
    @name(".ingress.buffer.set_phi")
    action set_phi(@id(1) bit<32> phi) {
        headroom = phi;
    }

    @id(ID_TABLE_HEADROOM_FOR)
    @name(".ingress.buffer.headroom_for")
    table headroom_for {
        key = {
            profile   : exact @id(1) @name("profile");
            steepness : lpm @id(2) @name("gradient");
        }
        actions = { set_phi; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PHI_ENTRIES;
    }

    apply {
        headroom_for.apply();
    }
}

#endif
