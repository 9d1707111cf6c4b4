// SPDX-License-Identifier: Apache-2.0
//
// The limit of the queue that a packet is bound for. Who holds the queue's bytes against
// it depends on the target: v1model/accounting.p4 does it in the pipeline, on Tofino it
// is the traffic manager.

#ifndef HEADGATE_V1MODEL_ADMISSION_P4
#define HEADGATE_V1MODEL_ADMISSION_P4

control Admission(inout metadata_t meta) {
    @id(ID_ACTION_SET_QUEUE_LIMIT)
    action set_queue_limit(@id(1) bit<32> bytes) {
        meta.queue_limit = bytes;
    }

    @id(ID_TABLE_QUEUE_LIMIT)
    table queue_limit {
        key = {
            meta.egress_port   : exact @id(1) @name("egress_port");
            meta.bridged.queue : exact @id(2) @name("queue");
        }
        actions = { set_queue_limit; }
        default_action = set_queue_limit(UNLIMITED);
        size = QUEUE_LIMIT_ENTRIES;
    }

    apply {
        // A poll must come back even when the port is full of packets, and a PAUSE go out.
        if (meta.bridged.poll == 1 || meta.bridged.refresh == 1 || meta.bridged.forget == 1) {
            meta.queue_limit = UNLIMITED;
        } else {
            queue_limit.apply();
        }
    }
}

#endif
