// SPDX-License-Identifier: Apache-2.0
//
// Looks up the limit of the packet's queue. v1model/accounting.p4 compares the queue's bytes
// with it. On Tofino the traffic manager does both.

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
        // No limit for polls and PAUSEs, because both must leave while the port's queues are full.
        if (meta.bridged.poll == 1 || meta.bridged.refresh == 1 || meta.bridged.forget == 1) {
            meta.queue_limit = UNLIMITED;
        } else {
            queue_limit.apply();
        }
    }
}

#endif
