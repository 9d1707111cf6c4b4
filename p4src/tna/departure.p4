// SPDX-License-Identifier: Apache-2.0
//
// The traffic manager's numbers of a packet that leaves: the depths of its queue, from cells to bytes,
// and its delay in ns.

#ifndef HEADGATE_TNA_DEPARTURE_P4
#define HEADGATE_TNA_DEPARTURE_P4

// A chip has no multiplication: 80 = 64 + 16 on Tofino 1, 176 = 128 + 32 + 16 on Tofino 2. An identity
// hash shifts a field in one step; an action would first have to collect it from several containers.
// Each action has one hash.
control CellsToBytes(in bit<19> cells, out bit<32> bytes) {
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) hash_16;
    bit<32> part;

    @hidden
    action times_16() {
        bytes = hash_16.get({9w0, cells, 4w0});
    }

    @hidden
    action add_part() {
        bytes = bytes + part;
    }

#if __TARGET_TOFINO__ == 2
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) hash_32;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) hash_128;
    bit<32> rest;

    @hidden
    action times_32() {
        part = hash_32.get({8w0, cells, 5w0});
    }

    @hidden
    action times_128() {
        rest = hash_128.get({6w0, cells, 7w0});
    }

    @hidden
    action add_rest() {
        part = part + rest;
    }

    apply {
        times_16();
        times_32();
        times_128();
        add_rest();
        add_part();
    }
#else
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) hash_64;

    @hidden
    action times_64() {
        part = hash_64.get({7w0, cells, 6w0});
    }

    apply {
        times_16();
        times_64();
        add_part();
    }
#endif
}

// Finds the depth that RED matches, in cells of 64 bytes. Tofino 1 counts 2^19 cells of 80 bytes, which
// 20 bits hold; Tofino 2's larger cells need saturation.
control RedDepth(inout metadata_t meta) {
    @hidden
    action measure() {
        meta.target.cells = meta.departure.queue_bytes >> DEPTH_CELL_SHIFT;
    }

    @hidden
    action fit() {
        meta.target.depth = meta.target.cells[19:0];
    }

#if __TARGET_TOFINO__ == 2
    @hidden
    action saturate() {
        meta.target.depth = DEEPEST;
    }

    apply {
        measure();
        if (meta.target.cells[31:20] == 0) {
            fit();
        } else {
            saturate();
        }
    }
#else
    apply {
        measure();
        fit();
    }
#endif
}

control Departure(inout metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
                  in egress_intrinsic_metadata_from_parser_t from_parser) {
    Random<bit<16>>() random;
    CellsToBytes() left;
    CellsToBytes() found;

    @hidden
    action depart() {
        meta.departure.port = intrinsic.egress_port;
        meta.egress_port = intrinsic.egress_port;
        meta.departure.draw = random.get();
        meta.departure.delay = (bit<32>)intrinsic.deq_timedelta;
    }

#if __TARGET_TOFINO__ == 1
    // deq_timedelta has 18 bits there, and wraps after 262 µs. The delay of a longer wait is the time
    // since the packet arrived. The pipeline's own hundreds of ns in it are small in comparison.
    @hidden
    action wait() {
        meta.target.waited = from_parser.global_tstamp[31:0] - meta.bridged.arrived;
    }

    @hidden
    action wait_long() {
        meta.departure.delay = meta.target.waited;
    }
#endif

    apply {
        depart();
#if __TARGET_TOFINO__ == 1
        wait();
        if (meta.target.waited[31:18] != 0) {
            wait_long();
        }
#endif
        left.apply(intrinsic.deq_qdepth, meta.departure.queue_bytes);
        found.apply(intrinsic.enq_qdepth, meta.queue_bytes);
    }
}

#endif
