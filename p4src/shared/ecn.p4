// SPDX-License-Identifier: Apache-2.0
//
// RED marking at dequeue (DCQCN's Kmin, Kmax, Pmax): the queue's depth behind the packet
// finds a probability, a random number decides. The entries come from package tables/red.

#ifndef HEADGATE_ECN_P4
#define HEADGATE_ECN_P4

control Ecn(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_SET_MARK_PROBABILITY)
    action set_mark_probability(@id(1) bit<17> p) {
        meta.mark_probability = p;
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
        bit<32> cells = meta.departure.queue_bytes >> DEPTH_CELL_SHIFT;
        meta.depth = (bit<16>)(cells > SATURATED_16 ? SATURATED_16 : cells);
        meta.mark_probability = 0;
    }

    @hidden
    action mark() {
        hdr.ipv4.ecn = CE;
        meta.marked = 1;
    }

    apply {
        if (hdr.ipv4.isValid() &&
            (hdr.ipv4.ecn == ECT_0 || hdr.ipv4.ecn == ECT_1)) {
            measure();
            ecn_red.apply();
            if ((bit<17>)meta.departure.draw < meta.mark_probability) {
                mark();
            }
        }
    }
}

#endif
