// SPDX-License-Identifier: Apache-2.0
//
// The work of the shared controls, for IPv6 packets.

#ifndef HEADGATE_V1MODEL_IPV6_P4
#define HEADGATE_V1MODEL_IPV6_P4

// Runs after Validate, which checks the frame and IPv4. Packets that Foreign marks need no shim.
control ValidateIpv6(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.drop_reason == DROP_NONE && hdr.ipv6.isValid()) {
            if (hdr.ipv6.version != 6) {
                meta.drop_reason = DROP_IPV6_HEADER;
            } else if ((bit<32>)hdr.ipv6.payload_len + 54 > meta.bridged.frame_bytes) {
                meta.drop_reason = DROP_IPV6_HEADER;
            } else if (hdr.udp.isValid() &&
                       (hdr.udp.length < 8 || hdr.udp.length > hdr.ipv6.payload_len)) {
                meta.drop_reason = DROP_UDP_LENGTH;
            }
        }
    }
}

// Checks source addresses at edge ports, as SourceCheck does for IPv4.
control SourceCheckIpv6(in headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_PERMIT_SOURCE_IPV6)
    @name(".ingress.source_check.permit_source_ipv6")
    action permit_source_ipv6() {}

    @id(ID_ACTION_REFUSE_SOURCE_IPV6)
    @name(".ingress.source_check.refuse_source_ipv6")
    action refuse_source_ipv6() {
        meta.drop_reason = DROP_SOURCE;
    }

    @id(ID_TABLE_SOURCE_CHECK_IPV6)
    @name(".ingress.source_check.source_check_ipv6")
    table source_check_ipv6 {
        key = {
            meta.arrival.port : exact @id(1) @name("ingress_port");
            hdr.ipv6.src_addr : lpm @id(2) @name("src_addr");
        }
        actions = { permit_source_ipv6; refuse_source_ipv6; @defaultonly NoAction; }
        const default_action = NoAction();
        size = SOURCE_CHECK_ENTRIES;
    }

    apply {
        if (hdr.ipv6.isValid()) {
            source_check_ipv6.apply();
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

// Runs after Pacc, which finds whether the queue is watched.
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
        support_timeout = true;
        size = FLOW_ENTRIES;
    }

    // Counts the flow's packets that met a queue above the threshold.
    @id(ID_DIRECT_COUNTER_CONGESTED_IPV6)
    @name(".ingress.pacc.congested_ipv6_counter")
    DIRECT_COUNTER(congested_ipv6_counter);

    @id(ID_ACTION_COUNT_CONGESTED_IPV6)
    @name(".ingress.pacc.count_congested_ipv6")
    action count_congested_ipv6() {
        COUNT_DIRECT(congested_ipv6_counter);
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
        size = FLOW_ENTRIES;
    }

    apply {
        if (meta.bridged.pacc_watched == 1 && hdr.ipv6.isValid()) {
            flow_ipv6.apply();
            if (meta.congestion != 0) {
                congested_flow_ipv6.apply();
            }
        }
    }
}

#endif
