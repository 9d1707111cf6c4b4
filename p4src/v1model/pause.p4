// SPDX-License-Identifier: Apache-2.0
//
// PFC frames leave through a packet's ingress port, as clones of the packet. Ingress clones for a
// PAUSE, egress for a RESUME. The clone becomes the frame in its egress. Frames are counted when
// they are made.

#ifndef HEADGATE_V1MODEL_PAUSE_P4
#define HEADGATE_V1MODEL_PAUSE_P4

// Sends a PAUSE, as a clone, out of the packet's ingress port.
control SendPause(inout metadata_t meta) {
    @hidden
    action send() {
        clone_preserving_field_list(CloneType.I2E,
            PFC_CLONE_SESSION + (bit<32>)meta.arrival.port, SIGNAL_LIST);
    }

    apply {
        if (meta.signal.kind != SIGNAL_NONE) {
            send();
        }
    }
}

// Empties the account of one queue and adds its bytes to the sums.
void forget_queue(in bit<32> index, inout bit<32> private, inout bit<32> shared, inout bit<32> headroom, inout bit<32> lent) {
    bit<32> cell;
    bit<64> loan;
    buffer_loan.read(loan, index);
    buffer_loan.write(index, 0);
    lent = lent - loan[31:0];
    buffer_private.read(cell, index);
    buffer_private.write(index, 0);
    private = private + cell;
    buffer_shared.read(cell, index);
    buffer_shared.write(index, 0);
    shared = shared + cell;
    buffer_headroom.read(cell, index);
    buffer_headroom.write(index, 0);
    headroom = headroom + cell;
    buffer_counted.write(index, 0);
}

// Handles a packet-out that repeats the pause state of its port to the peer, or clears it. The packet
// itself leaves by that port, so that no later PAUSE or RESUME overtakes it.
control Refresh(inout metadata_t meta, inout standard_metadata_t standard) {
    @hidden
    action look() {
        bit<9>  paused;
        bit<48> paused_at;
        buffer_paused.read(paused, (bit<32>)meta.departure.port);
        buffer_paused_at.read(paused_at, (bit<32>)meta.departure.port);
        meta.signal.classes = PAUSED_CLASSES(paused);
        meta.signal.kind = (paused != 0) ? SIGNAL_REFRESH : SIGNAL_RESUME;
        buffer_paused_at.write((bit<32>)meta.departure.port,
            (paused != 0) ? standard.egress_global_timestamp : paused_at);
    }

    // The controller asks for this when the switch holds no packet of the port. The remaining bytes
    // belong to packets that the traffic manager dropped by itself. All classes resume.
    @hidden
    action forget() {
        bit<32> port = (bit<32>)meta.departure.port;
        bit<32> first_queue = port << 3;
        bit<32> cell;
        bit<32> private = 0;
        bit<32> shared = 0;
        bit<32> headroom = 0;
        bit<32> insured;
        bit<32> lent;
        bit<9>  paused;
        buffer_pools.read(lent, POOL_LENT);
        forget_queue(first_queue, private, shared, headroom, lent);
        forget_queue(first_queue + 1, private, shared, headroom, lent);
        forget_queue(first_queue + 2, private, shared, headroom, lent);
        forget_queue(first_queue + 3, private, shared, headroom, lent);
        forget_queue(first_queue + 4, private, shared, headroom, lent);
        forget_queue(first_queue + 5, private, shared, headroom, lent);
        forget_queue(first_queue + 6, private, shared, headroom, lent);
        forget_queue(first_queue + 7, private, shared, headroom, lent);
        buffer_pools.write(POOL_LENT, lent);
        buffer_insured.read(insured, port);
        buffer_insured.write(port, 0);
        buffer_port_shared.write(port, 0);
        buffer_pools.read(cell, POOL_PRIVATE);
        buffer_pools.write(POOL_PRIVATE, cell |-| private);
        buffer_pools.read(cell, POOL_SHARED);
        buffer_pools.write(POOL_SHARED, cell |-| (shared - insured));
        buffer_pools.read(cell, POOL_HEADROOM);
        buffer_pools.write(POOL_HEADROOM, cell |-| headroom);
        buffer_pools.read(cell, POOL_INSURANCE);
        buffer_pools.write(POOL_INSURANCE, cell |-| insured);
        buffer_paused.read(paused, port);
        buffer_paused.write(port, 0);
        spfc_count.write(port, 0);
        spfc_victim.write(port, 0);
        meta.signal.classes = PAUSED_CLASSES(paused);
        meta.signal.kind = (paused != 0) ? SIGNAL_RESUME : SIGNAL_NONE;
    }

    apply {
        if (meta.bridged.forget == 1) {
            forget();
        } else {
            look();
        }
        if (meta.signal.kind == SIGNAL_NONE) {
            mark_to_drop(standard);
        }
    }
}

// Makes the PFC frame and truncates the packet's payload.
control SendPfc(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(ID_COUNTER_PFC_PAUSES)
    @name(".egress.pfc_pauses")
    counter(PORT_CELLS, CounterType.packets) pfc_pauses;

    @id(ID_COUNTER_PFC_RESUMES)
    @name(".egress.pfc_resumes")
    counter(PORT_CELLS, CounterType.packets) pfc_resumes;

    @id(ID_COUNTER_PFC_REFRESHES)
    @name(".egress.pfc_refreshes")
    counter(PORT_CELLS, CounterType.packets) pfc_refreshes;

    Pfc() pfc;

    apply {
        meta.departure.port = standard.egress_port;
        pfc.apply(hdr, meta);
        truncate(PFC_FRAME_BYTES);
        if (meta.signal.kind == SIGNAL_PAUSE) {
            pfc_pauses.count((bit<32>)meta.departure.port);
        } else if (meta.signal.kind == SIGNAL_RESUME) {
            pfc_resumes.count((bit<32>)meta.departure.port);
        } else {
            pfc_refreshes.count((bit<32>)meta.departure.port);
        }
    }
}

#endif
