// SPDX-License-Identifier: Apache-2.0
//
// Longest-prefix match of IPv4 and IPv6 to a group of next hops. A hash of the flow chooses the
// next hop, so that a flow keeps its path. Tofino has tna/routing.p4, for IPv4.

#ifndef HEADGATE_V1MODEL_ROUTING_P4
#define HEADGATE_V1MODEL_ROUTING_P4

#define CRC_32(result, ...) \
    hash(result, HashAlgorithm.crc32, 32w0, { __VA_ARGS__ }, 64w0x100000000)

control Routing(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_SELECTOR_ECMP)
    @max_group_size(MAX_GROUP_MEMBERS)
    action_selector(HashAlgorithm.crc32, ECMP_MEMBERS, ECMP_HASH_BITS) ecmp;

    // The seed is added and subtracted, not hashed. A CRC is linear: a hashed seed would change
    // the hashes of all flows by the same bits, and switches in a row would choose alike. The
    // carries of an addition depend on the flow (Go package internal/ecmp). Tables that share a
    // selector must give it the same fields.
    @hidden
    action add_seed(in bit<32> seed) {
        meta.target.hash_sum = meta.target.flow_hash + seed;
        meta.target.hash_difference = meta.target.flow_hash - seed;
    }

    @id(ID_ACTION_HASH_FIVE_TUPLE)
    action hash_five_tuple(@id(1) bit<32> seed) {
        CRC_32(meta.target.flow_hash, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol,
               meta.l4_src_port, meta.l4_dst_port);
        add_seed(seed);
    }

    @id(ID_ACTION_HASH_QUEUE_PAIR)
    action hash_queue_pair(@id(1) bit<32> seed) {
        CRC_32(meta.target.flow_hash, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol,
               meta.l4_src_port, meta.l4_dst_port, hdr.bth.dst_qp);
        add_seed(seed);
    }

    @id(ID_TABLE_ECMP_HASH)
    table ecmp_hash {
        key = { meta.target.roce : exact @id(1) @name("roce"); }
        actions = { hash_five_tuple; hash_queue_pair; }
        default_action = hash_five_tuple(0);
        size = 2;
    }

    // A fragment, and a packet with an extension header, have no ports.
    @id(ID_ACTION_HASH_FIVE_TUPLE_IPV6)
    action hash_five_tuple_ipv6(@id(1) bit<32> seed) {
        CRC_32(meta.target.flow_hash, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, hdr.ipv6.next_header,
               meta.l4_src_port, meta.l4_dst_port);
        add_seed(seed);
    }

    @id(ID_ACTION_HASH_QUEUE_PAIR_IPV6)
    action hash_queue_pair_ipv6(@id(1) bit<32> seed) {
        CRC_32(meta.target.flow_hash, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, hdr.ipv6.next_header,
               meta.l4_src_port, meta.l4_dst_port, hdr.bth.dst_qp);
        add_seed(seed);
    }

    // RFC 6438: the addresses and the flow label identify the flow.
    @id(ID_ACTION_HASH_FLOW_LABEL)
    action hash_flow_label(@id(1) bit<32> seed) {
        CRC_32(meta.target.flow_hash, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, hdr.ipv6.flow_label);
        add_seed(seed);
    }

    @id(ID_TABLE_ECMP_HASH_IPV6)
    table ecmp_hash_ipv6 {
        key = { meta.target.roce : exact @id(1) @name("roce"); }
        actions = { hash_five_tuple_ipv6; hash_queue_pair_ipv6; hash_flow_label; }
        default_action = hash_five_tuple_ipv6(0);
        size = 2;
    }

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
            hdr.ipv4.dst_addr           : lpm @id(1) @name("dst_addr");
            meta.target.hash_sum        : selector;
            meta.target.hash_difference : selector;
        }
        actions = { set_next_hop; @defaultonly NoAction; }
        const default_action = NoAction();
        implementation = ecmp;
        size = ROUTE_ENTRIES;
    }

    @id(ID_TABLE_IPV6_LPM)
    table ipv6_lpm {
        key = {
            hdr.ipv6.dst_addr           : lpm @id(1) @name("dst_addr");
            meta.target.hash_sum        : selector;
            meta.target.hash_difference : selector;
        }
        actions = { set_next_hop; @defaultonly NoAction; }
        const default_action = NoAction();
        implementation = ecmp;
        size = ROUTE_ENTRIES;
    }

    // The tables share the selector, and each has its own copy of the action. Conditions test hit,
    // because BMv2 finds no next node for the copy that belongs to the other table.
    apply {
        meta.target.roce = (bit<1>)(hdr.bth.isValid() && meta.target.foreign == 0);
        if (hdr.ipv6.isValid()) {
            // RFC 4291 §2.5.6: routers do not forward packets from or to link-local addresses.
            if (hdr.ipv6.dst_addr[127:120] == 0xff || hdr.ipv6.dst_addr[127:118] == LINK_LOCAL ||
                hdr.ipv6.src_addr[127:118] == LINK_LOCAL) {
                meta.drop_reason = DROP_LINK_SCOPE;
            } else {
                ecmp_hash_ipv6.apply();
                if (!ipv6_lpm.apply().hit || meta.decided == 0) {
                    meta.drop_reason = DROP_NO_ROUTE;
                } else if (hdr.ipv6.hop_limit <= 1) {
                    meta.drop_reason = DROP_HOP_LIMIT;
                } else {
                    hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                }
            }
        } else if (!hdr.ipv4.isValid()) {
            meta.drop_reason = DROP_NOT_IPV4;
        } else {
            ecmp_hash.apply();
            if (!ipv4_lpm.apply().hit || meta.decided == 0) {
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
