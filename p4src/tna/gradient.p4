// SPDX-License-Identifier: Apache-2.0
//
// DSH's Algorithm 3 for every egress queue, on the depth that the traffic manager tells of it.
// Package tables/estimate has the entries, the chip's arithmetic in Go, and the bounds.
//
// A register can be accessed once by a packet, and its ALU adds two numbers: it cannot take
// a quarter off an average and add to it at once. So packets of a queue take turns, and the
// algorithm runs on every other packet:
//
//   TURN_MEASURE  g = Δq/Δt since the packet two before, by logarithms (line 2);
//                 S += g and V += |4·g_avg − 4·g| (lines 3 to 5), where S = 4·g_avg and
//                 V = 16·v_avg, so that the weights of ¼ are additions.
//   TURN_DECAY    notes 4·g_avg and 4·ĝ = S + V (line 6), then S −= S/4, V −= V/4.
//
// The quarter is the math unit's, which looks at four bits: it is off by up to 1/16 of
// itself. It knows no signs, so S is the difference of two sums, of rises and of falls. A
// queue of steady g has ĝ from g to 1.31·g (1.22·g in the model).
//
// This is not Algorithm 3 on every packet. By the Go model, on random walks of a queue: the
// arithmetic alone, on the same packets, moves ĝ by 0.7 % of the line rate on average and φ̂
// by at most 8 % of Φ; but leaving out every other packet moves φ̂ by 14 % of Φ on average,
// by up to all of it, and it is too small by more than Φ/8 in a quarter of the cases. φ̂ is
// to be looked at; no headroom may be made smaller by it.
// A gradient is in bytes per 2^10 ns, and so an average of four is in bytes per 2^12 ns.
//
//   stage  0      1        2      3         4     5      6    7        8          9
//          turn ─ growth ─ logs ─ subtract ─ exp2 ─ S ─── net ─ average ─ deviation ─ gradient
//                 elapsed                                                            │
//                                                         of a poll: headroom_for ◄──┘

#ifndef HEADGATE_TNA_GRADIENT_P4
#define HEADGATE_TNA_GRADIENT_P4

// Index of (port, queue), as on v1model.
typedef bit<12> queue_index_t;
#define CELL (intrinsic.egress_port ++ meta.bridged.queue)

const bit<8> TURN_MEASURE = 0;
const bit<8> TURN_DECAY = 1;
const bit<8> TURN_POLL = 2; // changes nothing

control Gradient(inout headers_t hdr, inout metadata_t meta,
                 in egress_intrinsic_metadata_t intrinsic,
                 in egress_intrinsic_metadata_from_parser_t from_parser) {
    Log2Bytes() log2_bytes;
    Log2Ticks() log2_ticks;
    Exp2() exp2;
    HeadroomFor() headroom_for;

    bit<8>  turn;
    bit<8>  falls;
    bit<32> rise;    // S, of rises
    bit<32> fall;    // S, of falls

    // f(x) = x/4 for the middle of each sixteenth: 16·i + 8 for leading bits i, which the
    // unit shifts by ⌊log2 x⌋ − 9.
    MathUnit<bit<32>>(false, 0, -9, {248, 232, 216, 200, 184, 168, 152, 136,
                                     0, 0, 0, 0, 0, 0, 0, 0}) quarter;

    @id(ID_REGISTER_ESTIMATE_TURN)
    @name(".estimate_turn")
    Register<bit<8>, queue_index_t>(QUEUE_CELLS, 0) estimate_turn;
    RegisterAction<bit<8>, queue_index_t, bit<8>>(estimate_turn) take_turn = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = value;
            value = value ^ 1;
        }
    };

    @id(ID_REGISTER_ESTIMATE_LENGTH)
    @name(".estimate_length")
    Register<bit<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_length;
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_length) grow = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (meta.estimate.length >= value) {
                result = meta.estimate.length - value;
            } else {
                result = value - meta.estimate.length;
            }
            value = meta.estimate.length;
        }
    };

    // The same again: a register has one result.
    @id(ID_REGISTER_ESTIMATE_SIGN)
    @name(".estimate_sign")
    Register<bit<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_sign;
    RegisterAction<bit<32>, queue_index_t, bit<8>>(estimate_sign) shrink = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (meta.estimate.length < value) {
                result = 1;
            } else {
                result = 0;
            }
            value = meta.estimate.length;
        }
    };

    // Wraps after 4.3 s.
    @id(ID_REGISTER_ESTIMATE_TIME)
    @name(".estimate_time")
    Register<bit<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_time;
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_time) elapse = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = from_parser.global_tstamp[31:0] - value;
            value = from_parser.global_tstamp[31:0];
        }
    };

#define SUM(name) \
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_##name) add_##name = { \
        void apply(inout bit<32> value) { \
            value = value + meta.estimate.gradient; \
        } \
    }; \
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_##name) decay_##name = { \
        void apply(inout bit<32> value, out bit<32> result) { \
            result = value; \
            value = value - quarter.execute(value); \
        } \
    };

    @id(ID_REGISTER_ESTIMATE_RISES)
    @name(".estimate_rises")
    Register<bit<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_rises;
    SUM(rises)

    @id(ID_REGISTER_ESTIMATE_FALLS)
    @name(".estimate_falls")
    Register<bit<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_falls;
    SUM(falls)
#undef SUM

    // 4·g_avg before this turn, for line 3.
    @id(ID_REGISTER_ESTIMATE_AVERAGE)
    @name(".estimate_average")
    Register<int<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_average;
    RegisterAction<int<32>, queue_index_t, int<32>>(estimate_average) deviate = {
        void apply(inout int<32> value, out int<32> result) {
            if (value >= meta.estimate.four_g) {
                result = value - meta.estimate.four_g;
            } else {
                result = meta.estimate.four_g - value;
            }
        }
    };
    RegisterAction<int<32>, queue_index_t, int<32>>(estimate_average) write_average = {
        void apply(inout int<32> value) {
            value = (int<32>)meta.estimate.average;
        }
    };
    RegisterAction<int<32>, queue_index_t, int<32>>(estimate_average) read_average = {
        void apply(inout int<32> value, out int<32> result) {
            result = value;
        }
    };

    @id(ID_REGISTER_ESTIMATE_DEVIATION)
    @name(".estimate_deviation")
    Register<bit<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_deviation;
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_deviation) add_deviation = {
        void apply(inout bit<32> value) {
            value = value + meta.estimate.deviation;
        }
    };
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_deviation) decay_deviation = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value + meta.estimate.average;
            value = value - quarter.execute(value);
        }
    };

    // 4·ĝ, for polls.
    @id(ID_REGISTER_ESTIMATE_GRADIENT)
    @name(".estimate_gradient")
    Register<bit<32>, queue_index_t>(QUEUE_CELLS, 0) estimate_gradient;
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_gradient) write_gradient = {
        void apply(inout bit<32> value) {
            value = meta.estimate.steepness;
        }
    };
    RegisterAction<bit<32>, queue_index_t, bit<32>>(estimate_gradient) read_gradient = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    // Which thresholds ĝ → φ̂ are those of the port's link.
    @id(ID_ACTION_SET_PROFILE)
    @name(".egress.gradient.set_profile")
    action set_profile(@id(1) bit<8> profile) {
        hdr.estimate_report.profile = profile;
    }

    @id(ID_TABLE_ESTIMATE_PORT)
    @name(".egress.gradient.estimate_port")
    table estimate_port {
        key = { meta.departure.port : exact @id(1) @name("egress_port"); }
        actions = { set_profile; }
        const default_action = set_profile(0);
        size = PORT_CELLS;
    }

    @hidden
    action observe() {
        meta.estimate.length = (bit<32>)intrinsic.deq_qdepth;
        falls = 0;
        rise = 0;
        fall = 0;
        meta.estimate.log_bytes = 0;
        meta.estimate.log_ticks = 0;
        turn = take_turn.execute(CELL);
    }

    // A gradient below 1 is 0.
    @hidden
    action subtract() {
        meta.estimate.log_gradient = meta.estimate.log_bytes |-| meta.estimate.log_ticks;
    }

    @hidden
    action multiply() {
        meta.estimate.four_g = (int<32>)(meta.estimate.gradient << 2);
    }

    @hidden
    action negate() {
        meta.estimate.four_g = 0 - meta.estimate.four_g;
    }

    @hidden
    action combine() {
        meta.estimate.average = rise - fall;
    }

    @hidden
    action begin_report() {
        turn = TURN_POLL;
        falls = 0;
        rise = 0;
        fall = 0;
        hdr.estimate_report.setValid();
        hdr.estimate_report.reserved = 0;
        hdr.estimate_report.headroom = 0;
    }

    @hidden
    action name_queue() {
        hdr.estimate_report.queue = meta.bridged.queue;
    }

    // One step after the other, each with a condition of its own: Tofino 1 cannot do anything
    // else within a branch that takes several stages. Where a step does no harm it has none.
    apply {
        if (meta.bridged.poll == 1) {
            begin_report();
        } else {
            observe();
        }
        if (turn == TURN_POLL) {
            name_queue();
            estimate_port.apply();
        }
        if (turn == TURN_MEASURE) {
            meta.estimate.growth = grow.execute(CELL);
            meta.estimate.elapsed = elapse.execute(CELL);
            falls = shrink.execute(CELL);
        }
        log2_bytes.apply(meta);
        log2_ticks.apply(meta);
        subtract();
        exp2.apply(meta);
        multiply();
        if (turn == TURN_MEASURE && falls == 0) {
            add_rises.execute(CELL);
        } else if (turn == TURN_DECAY) {
            rise = decay_rises.execute(CELL);
        }
        if (turn == TURN_MEASURE && falls == 1) {
            add_falls.execute(CELL);
        } else if (turn == TURN_DECAY) {
            fall = decay_falls.execute(CELL);
        }
        combine();
        if (falls == 1) {
            negate();
        }
        if (turn == TURN_MEASURE) {
            meta.estimate.deviation = (bit<32>)deviate.execute(CELL);
        } else if (turn == TURN_DECAY) {
            write_average.execute(CELL);
        } else {
            hdr.estimate_report.average = (bit<32>)read_average.execute(CELL);
        }
        if (turn == TURN_MEASURE) {
            add_deviation.execute(CELL);
        } else if (turn == TURN_DECAY) {
            meta.estimate.steepness = decay_deviation.execute(CELL);
        }
        if (turn == TURN_DECAY) {
            write_gradient.execute(CELL);
        } else if (turn == TURN_POLL) {
            hdr.estimate_report.gradient = read_gradient.execute(CELL);
        }
        // A queue that does not grow needs no headroom.
        if (turn == TURN_POLL && hdr.estimate_report.gradient[31:31] == 0 &&
            hdr.estimate_report.gradient != 0) {
            headroom_for.apply(hdr.estimate_report.profile, hdr.estimate_report.gradient,
                               hdr.estimate_report.headroom);
        }
    }
}

#endif
