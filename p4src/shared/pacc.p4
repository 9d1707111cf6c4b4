// SPDX-License-Identifier: Apache-2.0
//
// PACC's flow table for IPv4 (SYSTEMS.md section 3, Algorithm 1 lines 27 to 31): the bytes that each pair
// of addresses sends to an egress port, and how many of its packets met a queue above Q_th.
// The pipeline only counts. The controller, or an agent at the switch, learns flows from digests, reads
// the counters once per period and sends the CNPs.
//
// The program that learns flows owns the tables marked @learned. The controller does not reconcile them.
// Pacc runs in ingress. PaccCongestion runs where the target knows the bytes of the queue in front of the
// packet. Polls have no IP header.

#ifndef HEADGATE_PACC_P4
#define HEADGATE_PACC_P4

control Pacc(in headers_t hdr, inout metadata_t meta) {
    // Counts every packet of the flow.
    @id(ID_DIRECT_COUNTER_FLOW)
    DIRECT_COUNTER(flow_counter);

    @id(ID_ACTION_WATCH)
    action watch(@id(1) bit<32> threshold) {
        meta.bridged.pacc_threshold = threshold;
        meta.bridged.pacc_watched = 1;
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
        COUNT_DIRECT(flow_counter);
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
        IDLE_TIMEOUT = true;
        size = FLOW_ENTRIES;
    }

    apply {
        watched_queue.apply();
        if (meta.bridged.pacc_watched == 1 && hdr.ipv4.isValid()) {
            flow.apply();
        }
    }
}

control PaccCongestion(in headers_t hdr, inout metadata_t meta) {
    // Counts the flow's packets that met a queue above the threshold.
    @id(ID_DIRECT_COUNTER_CONGESTED)
    @name(".ingress.pacc.congested_counter")
    DIRECT_COUNTER(congested_counter);

    @hidden
    action compare() {
        meta.congestion = meta.queue_bytes |-| meta.bridged.pacc_threshold;
    }

    @id(ID_ACTION_COUNT_CONGESTED)
    @name(".ingress.pacc.count_congested")
    action count_congested() {
        COUNT_DIRECT_EGRESS(congested_counter);
    }

    @id(ID_TABLE_CONGESTED_FLOW)
    @learned
    @name(".ingress.pacc.congested_flow")
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
        compare();
        if (meta.bridged.pacc_watched == 1 && hdr.ipv4.isValid() && meta.congestion != 0) {
            congested_flow.apply();
        }
    }
}

#endif
