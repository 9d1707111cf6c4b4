// SPDX-License-Identifier: Apache-2.0
//
// The queueing delay in maxQD units. The chip's low-pass filter in sample mode smooths the delay of each
// port (Söze, section 4: over 10 µs); a shift scales the result. The filter's mode and time constants
// are set through BF Runtime. Before that, its output is undefined.

#ifndef HEADGATE_TNA_SCALE_P4
#define HEADGATE_TNA_SCALE_P4

control ScaleDelay(inout metadata_t meta) {
    @name(".egress.maxqd.delay_filter")
    Lpf<bit<32>, port_id_t>(PORT_CELLS) delay_filter;

    @hidden
    action filter() {
        meta.scaled_delay = delay_filter.execute(meta.departure.delay, meta.departure.port);
    }

// A shift by a field is a choice among shifts by constants: by four times the field's upper bits, then
// by its lower bits.
#define SHIFT(n) @hidden action shift_##n() { meta.scaled_delay = meta.scaled_delay >> n; }
    SHIFT(1)
    SHIFT(2)
    SHIFT(3)
    SHIFT(4)
    SHIFT(8)
    SHIFT(12)
    SHIFT(16)
    SHIFT(20)
    SHIFT(24)
    SHIFT(28)
#undef SHIFT

    @hidden
    table shift_by_fours {
        key = { meta.scale[4:2] : exact @name("fours"); }
        actions = { shift_4; shift_8; shift_12; shift_16; shift_20; shift_24; shift_28; NoAction; }
        const entries = {
            1 : shift_4();
            2 : shift_8();
            3 : shift_12();
            4 : shift_16();
            5 : shift_20();
            6 : shift_24();
            7 : shift_28();
        }
        const default_action = NoAction();
        size = 8;
    }

    @hidden
    table shift_by_ones {
        key = { meta.scale[1:0] : exact @name("ones"); }
        actions = { shift_1; shift_2; shift_3; NoAction; }
        const entries = {
            1 : shift_1();
            2 : shift_2();
            3 : shift_3();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        // A poll does not wait behind data, so its delay does not count.
        if (meta.bridged.poll == 0) {
            filter();
        }
        shift_by_fours.apply();
        shift_by_ones.apply();
    }
}

#endif
