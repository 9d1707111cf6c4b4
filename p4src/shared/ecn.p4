// SPDX-License-Identifier: Apache-2.0
//
// RED marking at dequeue (DCQCN's Kmin, Kmax, Pmax). The curve of the port and queue maps the queue's
// depth behind the packet to a probability, and a random number decides. Package tables/red makes the
// entries. Each target defines RED_DEPTH, because a chip matches fewer bits of the depth.

#ifndef HEADGATE_ECN_P4
#define HEADGATE_ECN_P4

control Ecn(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_SET_CURVE)
    action set_curve(@id(1) bit<8> curve) {
        meta.target.curve = curve;
    }

    @id(ID_ACTION_SET_MARK_PROBABILITY)
    action set_mark_probability(@id(1) bit<17> p) {
        meta.mark_probability = p[15:0];
        meta.mark_always = p[16:16];
    }

    // A port without an entry has the curve with the queue's number.
    @id(ID_TABLE_ECN_CURVE)
    table ecn_curve {
        key = {
            meta.departure.port : exact @id(1) @name("egress_port");
            meta.bridged.queue  : exact @id(2) @name("queue");
        }
        actions = { set_curve; @defaultonly NoAction; }
        const default_action = NoAction();
        size = QUEUE_CELLS;
    }

    @id(ID_TABLE_ECN_RED)
    table ecn_red {
        key = {
            meta.target.curve : exact @id(1) @name("curve");
            RED_DEPTH         : range @id(2) @name("depth");
        }
        actions = { set_mark_probability; @defaultonly NoAction; }
        const default_action = NoAction();
        size = RED_ENTRIES;
    }

    // The difference is not 0 for mark_probability of 65536 draws.
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

    apply {
        meta.target.curve = (bit<8>)meta.bridged.queue;
        ecn_curve.apply();
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

// Runs after Ecn, which looks up the probability and draws: draw is not 0 if the packet is marked.
control EcnIpv6(inout headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.ipv6.isValid() && (hdr.ipv6.ecn == ECT_0 || hdr.ipv6.ecn == ECT_1) &&
            meta.mark_probability != 0) {
            hdr.ipv6.ecn = CE;
            meta.marked = 1;
        }
    }
}

#endif
