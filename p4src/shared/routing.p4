// SPDX-License-Identifier: Apache-2.0
//
// Longest-prefix match to a group of next hops; the five-tuple chooses among them, so
// that a flow keeps its way. ECMP_SELECTOR is the target's action selector over CRC-32.

#ifndef HEADGATE_ROUTING_P4
#define HEADGATE_ROUTING_P4

control Routing(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_SELECTOR_ECMP)
    @max_group_size(MAX_GROUP_MEMBERS)
    ECMP_SELECTOR(ecmp, ECMP_MEMBERS, ECMP_HASH_BITS);

    @id(ID_ACTION_SET_NEXT_HOP)
    action set_next_hop(@id(1) port_id_t port, @id(2) mac_t src_mac, @id(3) mac_t dst_mac) {
        meta.egress_port = port;
        meta.decided = 1;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
    }

    @id(ID_TABLE_IPV4_LPM)
    table ipv4_lpm {
        key = {
            hdr.ipv4.dst_addr : lpm @id(1) @name("dst_addr");
            hdr.ipv4.src_addr : selector;
            hdr.ipv4.dst_addr : selector;
            hdr.ipv4.protocol : selector;
            meta.l4_src_port  : selector;
            meta.l4_dst_port  : selector;
        }
        actions = { set_next_hop; @defaultonly NoAction; }
        const default_action = NoAction();
        implementation = ECMP_IMPLEMENTATION(ecmp);
        size = ROUTE_ENTRIES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
        }
        // A target that looks up a packet that it will drop keeps the first reason.
        if (meta.drop_reason == DROP_NONE) {
            if (!hdr.ipv4.isValid()) {
                meta.drop_reason = DROP_NOT_IPV4;
            } else if (meta.decided == 0) {
                meta.drop_reason = DROP_NO_ROUTE;
            } else if (hdr.ipv4.ttl <= 1) {
                meta.drop_reason = DROP_TTL;
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            }
        }
    }
}

#endif
