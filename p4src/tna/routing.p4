// SPDX-License-Identifier: Apache-2.0
//
// Longest-prefix match to a group of next hops. A hash of the flow chooses among them, so that a flow
// keeps its path. The hash is that of v1model/routing.p4, bit by bit (Go package internal/ecmp). The
// chip decides which member of a group a hash stands for.

#ifndef HEADGATE_TNA_ROUTING_P4
#define HEADGATE_TNA_ROUTING_P4

// Computes the hash of the flow and of the switch's seed. Its stages are those of the controls before
// Routing. The names are those of v1model's only control.
control FlowHash(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) five_tuple;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) queue_pair;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) five_tuple_ipv6;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) queue_pair_ipv6;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) flow_label;

    // A chip's table has one hash. So the table only selects the hash.
    @id(ID_ACTION_HASH_FIVE_TUPLE)
    @name(".ingress.routing.hash_five_tuple")
    action hash_five_tuple(@id(1) bit<32> seed) {
        meta.target.hash_by = HASH_BY_FIVE_TUPLE;
        meta.target.seed = seed;
    }

    @id(ID_ACTION_HASH_QUEUE_PAIR)
    @name(".ingress.routing.hash_queue_pair")
    action hash_queue_pair(@id(1) bit<32> seed) {
        meta.target.hash_by = HASH_BY_QUEUE_PAIR;
        meta.target.seed = seed;
    }

    @id(ID_TABLE_ECMP_HASH)
    @name(".ingress.routing.ecmp_hash")
    table ecmp_hash {
        key = { hdr.bth.isValid() : exact @id(1) @name("roce"); }
        actions = { hash_five_tuple; hash_queue_pair; }
        default_action = hash_five_tuple(0);
        size = 2;
    }

    @id(ID_ACTION_HASH_FIVE_TUPLE_IPV6)
    @name(".ingress.routing.hash_five_tuple_ipv6")
    action hash_five_tuple_ipv6(@id(1) bit<32> seed) {
        meta.target.hash_by = HASH_BY_FIVE_TUPLE;
        meta.target.seed = seed;
    }

    @id(ID_ACTION_HASH_QUEUE_PAIR_IPV6)
    @name(".ingress.routing.hash_queue_pair_ipv6")
    action hash_queue_pair_ipv6(@id(1) bit<32> seed) {
        meta.target.hash_by = HASH_BY_QUEUE_PAIR;
        meta.target.seed = seed;
    }

    @id(ID_ACTION_HASH_FLOW_LABEL)
    @name(".ingress.routing.hash_flow_label")
    action hash_flow_label(@id(1) bit<32> seed) {
        meta.target.hash_by = HASH_BY_FLOW_LABEL;
        meta.target.seed = seed;
    }

    @id(ID_TABLE_ECMP_HASH_IPV6)
    @name(".ingress.routing.ecmp_hash_ipv6")
    table ecmp_hash_ipv6 {
        key = { hdr.bth.isValid() : exact @id(1) @name("roce"); }
        actions = { hash_five_tuple_ipv6; hash_queue_pair_ipv6; hash_flow_label; }
        default_action = hash_five_tuple_ipv6(0);
        size = 2;
    }

    @hidden
    action get_five_tuple() {
        meta.target.flow_hash = five_tuple.get({hdr.ipv4.src_addr, hdr.ipv4.dst_addr,
                                                hdr.ipv4.protocol, meta.l4_src_port,
                                                meta.l4_dst_port});
    }

    @hidden
    action get_queue_pair() {
        meta.target.flow_hash = queue_pair.get({hdr.ipv4.src_addr, hdr.ipv4.dst_addr,
                                                hdr.ipv4.protocol, meta.l4_src_port,
                                                meta.l4_dst_port, hdr.bth.dst_qp});
    }

    @hidden
    action get_five_tuple_ipv6() {
        meta.target.flow_hash = five_tuple_ipv6.get({hdr.ipv6.src_addr, hdr.ipv6.dst_addr,
                                                     hdr.ipv6.next_header, meta.l4_src_port,
                                                     meta.l4_dst_port});
    }

    @hidden
    action get_queue_pair_ipv6() {
        meta.target.flow_hash = queue_pair_ipv6.get({hdr.ipv6.src_addr, hdr.ipv6.dst_addr,
                                                     hdr.ipv6.next_header, meta.l4_src_port,
                                                     meta.l4_dst_port, hdr.bth.dst_qp});
    }

    // RFC 6438: the addresses and the flow label identify the flow. v1model's hash pads the last byte.
    @hidden
    action get_flow_label() {
        meta.target.flow_hash = flow_label.get({hdr.ipv6.src_addr, hdr.ipv6.dst_addr,
                                                hdr.ipv6.flow_label, 4w0});
    }

    // The seed is added and subtracted, not hashed. A CRC is linear: a hashed seed would change the
    // hashes of all flows by the same bits, and switches in a row would choose alike. The carries of an
    // addition depend on the flow.
    @hidden
    action add_seed() {
        meta.target.hash_sum = meta.target.flow_hash + meta.target.seed;
        meta.target.hash_difference = meta.target.flow_hash - meta.target.seed;
    }

    apply {
        if (hdr.ipv6.isValid()) {
            ecmp_hash_ipv6.apply();
        } else {
            ecmp_hash.apply();
        }
        if (!hdr.ipv6.isValid()) {
            if (meta.target.hash_by == HASH_BY_QUEUE_PAIR) {
                get_queue_pair();
            } else {
                get_five_tuple();
            }
        } else if (meta.target.hash_by == HASH_BY_FLOW_LABEL) {
            get_flow_label();
        } else if (meta.target.hash_by == HASH_BY_QUEUE_PAIR) {
            get_queue_pair_ipv6();
        } else {
            get_five_tuple_ipv6();
        }
        add_seed();
    }
}

// Finds the next hop of each packet. It runs beside Punt, and Routing uses the next hop if no control
// has decided on a port.
control NextHop(in headers_t hdr, inout metadata_t meta) {
    // P4Info has one object for members and groups. That is the members' object, so it comes first and
    // has the annotations.
    @id(ID_SELECTOR_ECMP)
    @max_group_size(MAX_GROUP_MEMBERS)
    @name(".ingress.routing.ecmp")
    ActionProfile(ECMP_MEMBERS) ecmp;
    Hash<bit<ECMP_HASH_BITS>>(HashAlgorithm_t.CRC32) ecmp_hash;
    @name(".ingress.routing.ecmp_selector")
    ActionSelector(ecmp, ecmp_hash, SelectorMode_t.FAIR, MAX_GROUP_MEMBERS, ECMP_GROUPS)
        ecmp_selector;

    // Tables of a chip share a selector only within one stage, so IPv6 has its own.
    @id(ID_SELECTOR_ECMP_IPV6)
    @max_group_size(MAX_GROUP_MEMBERS)
    @name(".ingress.routing.ecmp_ipv6")
    ActionProfile(ECMP_MEMBERS) ecmp_ipv6;
    Hash<bit<ECMP_HASH_BITS>>(HashAlgorithm_t.CRC32) ecmp_hash_ipv6;
    @name(".ingress.routing.ecmp_selector_ipv6")
    ActionSelector(ecmp_ipv6, ecmp_hash_ipv6, SelectorMode_t.FAIR, MAX_GROUP_MEMBERS, ECMP_GROUPS)
        ecmp_selector_ipv6;

    @id(ID_ACTION_SET_NEXT_HOP)
    @name(".ingress.routing.set_next_hop")
    action set_next_hop(@id(1) port_id_t port, @id(2) mac_t src_mac, @id(3) mac_t dst_mac) {
        meta.target.routed = 1;
        meta.target.hop_port = port;
        meta.target.hop_src_mac = src_mac;
        meta.target.hop_dst_mac = dst_mac;
    }

    @id(ID_TABLE_IPV4_LPM)
    @name(".ingress.routing.ipv4_lpm")
    table ipv4_lpm {
        key = {
            hdr.ipv4.dst_addr           : lpm @id(1) @name("dst_addr");
            meta.target.hash_sum        : selector;
            meta.target.hash_difference : selector;
        }
        actions = { set_next_hop; @defaultonly NoAction; }
        const default_action = NoAction();
        implementation = ecmp_selector;
        size = ROUTE_ENTRIES;
    }

    @id(ID_TABLE_IPV6_LPM)
    @name(".ingress.routing.ipv6_lpm")
    table ipv6_lpm {
        key = {
            hdr.ipv6.dst_addr           : lpm @id(1) @name("dst_addr");
            meta.target.hash_sum        : selector;
            meta.target.hash_difference : selector;
        }
        actions = { set_next_hop; @defaultonly NoAction; }
        const default_action = NoAction();
        implementation = ecmp_selector_ipv6;
        size = ROUTE_IPV6_ENTRIES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
        } else if (hdr.ipv6.isValid()) {
            ipv6_lpm.apply();
        }
    }
}

control Routing(inout headers_t hdr, inout metadata_t meta) {
    @hidden
    action take_hop() {
        meta.egress_port = meta.target.hop_port;
        hdr.ethernet.src_addr = meta.target.hop_src_mac;
        hdr.ethernet.dst_addr = meta.target.hop_dst_mac;
    }

    // Runs for packets without a decision on their port. The first drop reason stays.
    apply {
        if (meta.target.routed == 1) {
            take_hop();
        }
        if (meta.drop_reason == DROP_NONE) {
            if (hdr.ipv4.isValid()) {
                if (meta.target.routed == 0) {
                    meta.drop_reason = DROP_NO_ROUTE;
                } else if (hdr.ipv4.ttl <= 1) {
                    meta.drop_reason = DROP_TTL;
                } else {
                    hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                }
            } else if (!hdr.ipv6.isValid()) {
                meta.drop_reason = DROP_NOT_IPV4;
            } else if (hdr.ipv6.dst_addr[127:120] == 0xff || hdr.ipv6.dst_addr[127:118] == LINK_LOCAL) {
                // RFC 4291 §2.5.6: routers do not forward packets from or to link-local addresses.
                meta.drop_reason = DROP_LINK_SCOPE;
            } else if (hdr.ipv6.src_addr[127:118] == LINK_LOCAL) {
                meta.drop_reason = DROP_LINK_SCOPE;
            } else if (meta.target.routed == 0) {
                meta.drop_reason = DROP_NO_ROUTE;
            } else if (hdr.ipv6.hop_limit <= 1) {
                meta.drop_reason = DROP_HOP_LIMIT;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            }
        }
    }
}

#endif
