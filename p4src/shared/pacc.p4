// SPDX-License-Identifier: Apache-2.0
//
// PACC's flow table (SYSTEMS.md section 3, Algorithm 1 lines 27 to 31): what each pair of
// addresses sends to an egress port, and how many of its packets met a queue above Q_th.
// The controller, or an agent beside the switch, learns flows from digests, reads the
// counters once a period and sends the CNPs; the pipeline only counts.
//
// Tables marked @learned belong to whoever learns; nobody reconciles them.
// It stands behind admission, where the queue that the packet joins is known. A queue
// without an entry in watched_queue costs one lookup in a table that may be empty.

#ifndef HEADGATE_PACC_P4
#define HEADGATE_PACC_P4

control Pacc(in headers_t hdr, inout metadata_t meta) {
    // Every packet of the flow, and those that found more than the threshold queued.
    @id(ID_DIRECT_COUNTER_FLOW)
    DIRECT_COUNTER(flow_counter);
    @id(ID_DIRECT_COUNTER_CONGESTED)
    DIRECT_COUNTER(congested_counter);

    @id(ID_ACTION_WATCH)
    action watch(@id(1) bit<32> threshold) {
        meta.pacc_threshold = threshold;
        meta.pacc_watched = 1;
    }

    @id(ID_TABLE_WATCHED_QUEUE)
    table watched_queue {
        key = {
            meta.egress_port   : exact @id(1) @name("egress_port");
            meta.bridged.queue : exact @id(2) @name("queue");
        }
        actions = { watch; @defaultonly NoAction; }
        const default_action = NoAction();
        size = WATCHED_QUEUE_ENTRIES;
    }

    @id(ID_ACTION_COUNT_FLOW)
    action count_flow() {
        flow_counter.count();
    }

    @id(ID_ACTION_LEARN_FLOW)
    action learn_flow() {
        meta.learn = 1;
    }

    @id(ID_TABLE_FLOW)
    @learned
    table flow {
        key = {
            hdr.ipv4.src_addr : exact @id(1) @name("src_addr");
            hdr.ipv4.dst_addr : exact @id(2) @name("dst_addr");
            meta.egress_port  : exact @id(3) @name("egress_port");
        }
        actions = { count_flow; @defaultonly learn_flow; }
        const default_action = learn_flow();
        counters = flow_counter;
        support_timeout = true;
        size = FLOW_ENTRIES;
    }

    @id(ID_ACTION_COUNT_CONGESTED)
    action count_congested() {
        congested_counter.count();
    }

    @id(ID_TABLE_CONGESTED_FLOW)
    @learned
    table congested_flow {
        key = {
            hdr.ipv4.src_addr : exact @id(1) @name("src_addr");
            hdr.ipv4.dst_addr : exact @id(2) @name("dst_addr");
            meta.egress_port  : exact @id(3) @name("egress_port");
        }
        actions = { count_congested; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = congested_counter;
        size = FLOW_ENTRIES;
    }

    apply {
        watched_queue.apply();
        if (meta.pacc_watched == 1 && hdr.ipv4.isValid() && meta.bridged.poll == 0) {
            flow.apply();
            if (meta.queue_bytes > meta.pacc_threshold) {
                congested_flow.apply();
            }
        }
    }
}

#endif
