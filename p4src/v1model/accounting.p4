// SPDX-License-Identifier: Apache-2.0
//
// Bytes of every queue: added in ingress when the packet is admitted, released in egress.
//
// A packet that BMv2's traffic manager drops by itself (tail drop) never reaches egress, so
// its bytes stay in the account. Such a queue is full. The packet that later leaves it empty
// sets the account to zero.

#ifndef HEADGATE_V1MODEL_ACCOUNTING_P4
#define HEADGATE_V1MODEL_ACCOUNTING_P4

#define QUEUE_INDEX(port, queue) (((bit<32>)(port) << 3) | (bit<32>)(queue))

control Admit(inout metadata_t meta) {
    @hidden
    action admit() {
        bit<32> used;
        bit<32> index = QUEUE_INDEX(meta.egress_port, meta.bridged.queue);
        queue_bytes.read(used, index);
        meta.queue_bytes = used;
        bit<32> then = used |+| meta.bridged.frame_bytes;
        meta.refused = (then > meta.queue_limit) ? 1w1 : 1w0;
        queue_bytes.write(index, (then > meta.queue_limit) ? used : then);
    }

    @hidden
    action count_refused() {
        bit<32> drops;
        admission_drops.read(drops, (bit<32>)meta.egress_port);
        admission_drops.write((bit<32>)meta.egress_port, drops + 1);
        meta.drop_reason = DROP_ADMISSION;
    }

    apply {
        admit();
        if (meta.refused == 1) {
            count_refused();
        }
    }
}

control Release(inout metadata_t meta) {
    // Setting an empty queue to zero may lose an admission that ingress makes at the same time.
    // Until the queue is empty again, the account is then too low; it is never too high.
    @hidden
    action release() {
        bit<32> used;
        bit<32> index = QUEUE_INDEX(meta.departure.port, meta.bridged.queue);
        queue_bytes.read(used, index);
        bit<32> left = used |-| meta.bridged.frame_bytes;
        left = (meta.departure.queue_empty == 1) ? 32w0 : left;
        queue_bytes.write(index, left);
        meta.departure.queue_bytes = left;
    }

    apply {
        release();
    }
}

#endif
