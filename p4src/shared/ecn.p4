// SPDX-License-Identifier: Apache-2.0
//
// RED marking at dequeue (DCQCN's Kmin, Kmax, Pmax): the queue's depth behind the packet
// finds a probability, a random number decides. The entries come from package tables/red.

#ifndef HEADGATE_ECN_P4
#define HEADGATE_ECN_P4

control Ecn(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_SET_MARK_PROBABILITY)
    action set_mark_probability(@id(1) bit<17> p) {
        meta.mark_probability = p[15:0];
        meta.mark_always = p[16:16];
    }

    @id(ID_TABLE_ECN_RED)
    table ecn_red {
        key = {
            meta.bridged.queue : exact @id(1) @name("queue");
            meta.depth         : range @id(2) @name("depth");
        }
        actions = { set_mark_probability; @defaultonly NoAction; }
        const default_action = NoAction();
        size = RED_ENTRIES;
    }

    @hidden
    action measure() {
        meta.cells = meta.departure.queue_bytes >> DEPTH_CELL_SHIFT;
        meta.mark_probability = 0;
        meta.mark_always = 0;
    }

    @hidden
    action fit() {
        meta.depth = meta.cells[15:0];
    }

    @hidden
    action saturate() {
        meta.depth = SATURATED_16;
    }

    // What is left is not 0 in mark_probability of 65536 draws.
    @hidden
    action draw() {
        meta.mark_probability = meta.mark_probability |-| meta.departure.draw;
    }

    @hidden
    action mark_every() {
        meta.mark_probability = SATURATED_16;
    }

    @hidden
    action mark() {
        hdr.ipv4.ecn = CE;
        meta.marked = 1;
    }

    // The steps stand side by side, and not in one branch for the packets that they are for: a
    // chip runs what is in a branch of several stages before anything else.
    apply {
        measure();
        if (meta.cells[31:16] == 0) {
            fit();
        } else {
            saturate();
        }
        ecn_red.apply();
        if (meta.mark_always == 0) {
            draw();
        } else {
            mark_every();
        }
        if (hdr.ipv4.isValid() && (hdr.ipv4.ecn == ECT_0 || hdr.ipv4.ecn == ECT_1) &&
            meta.mark_probability != 0) {
            mark();
        }
    }
}

#endif
