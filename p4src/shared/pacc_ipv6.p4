// SPDX-License-Identifier: Apache-2.0
//
// PACC's flow table for IPv6. The controls run after Pacc and PaccCongestion, which find whether the
// queue is watched and whether the packet met congestion.

#ifndef HEADGATE_PACC_IPV6_P4
#define HEADGATE_PACC_IPV6_P4

// A flow of IPv6 that PACC's table lacks.
struct flow_ipv6_digest_t {
    ipv6_addr_t src_addr;
    ipv6_addr_t dst_addr;
    port_id_t   egress_port;
}

control PaccIpv6(in headers_t hdr, inout metadata_t meta) {
    @id(ID_DIRECT_COUNTER_FLOW_IPV6)
    @name(".ingress.pacc.flow_ipv6_counter")
    DIRECT_COUNTER(flow_ipv6_counter);

    @id(ID_ACTION_COUNT_FLOW_IPV6)
    @name(".ingress.pacc.count_flow_ipv6")
    action count_flow_ipv6() {
        COUNT_DIRECT(flow_ipv6_counter);
    }

    @id(ID_ACTION_LEARN_FLOW_IPV6)
    @name(".ingress.pacc.learn_flow_ipv6")
    action learn_flow_ipv6() {
        meta.learn = 1;
    }

    @id(ID_TABLE_FLOW_IPV6)
    @learned
    @name(".ingress.pacc.flow_ipv6")
    table flow_ipv6 {
        key = {
            hdr.ipv6.src_addr : exact @id(1) @name("src_addr");
            hdr.ipv6.dst_addr : exact @id(2) @name("dst_addr");
            meta.egress_port  : exact @id(3) @name("egress_port");
        }
        actions = { count_flow_ipv6; @defaultonly learn_flow_ipv6; }
        const default_action = learn_flow_ipv6();
        counters = flow_ipv6_counter;
        IDLE_TIMEOUT = true;
        size = FLOW_IPV6_ENTRIES;
    }

    apply {
        if (meta.bridged.pacc_watched == 1 && hdr.ipv6.isValid()) {
            flow_ipv6.apply();
        }
    }
}

control PaccCongestionIpv6(in headers_t hdr, in metadata_t meta) {
    // Counts the flow's packets that met a queue above the threshold.
    @id(ID_DIRECT_COUNTER_CONGESTED_IPV6)
    @name(".ingress.pacc.congested_ipv6_counter")
    DIRECT_COUNTER(congested_ipv6_counter);

    @id(ID_ACTION_COUNT_CONGESTED_IPV6)
    @name(".ingress.pacc.count_congested_ipv6")
    action count_congested_ipv6() {
        COUNT_DIRECT_EGRESS(congested_ipv6_counter);
    }

    @id(ID_TABLE_CONGESTED_FLOW_IPV6)
    @learned
    @name(".ingress.pacc.congested_flow_ipv6")
    table congested_flow_ipv6 {
        key = {
            hdr.ipv6.src_addr : exact @id(1) @name("src_addr");
            hdr.ipv6.dst_addr : exact @id(2) @name("dst_addr");
            meta.egress_port  : exact @id(3) @name("egress_port");
        }
        actions = { count_congested_ipv6; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = congested_ipv6_counter;
        size = FLOW_IPV6_ENTRIES;
    }

    apply {
        if (meta.bridged.pacc_watched == 1 && hdr.ipv6.isValid() && meta.congestion != 0) {
            congested_flow_ipv6.apply();
        }
    }
}

#endif
