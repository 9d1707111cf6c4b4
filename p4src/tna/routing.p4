// SPDX-License-Identifier: Apache-2.0
//
// Longest-prefix match to a group of next hops; a hash of the flow chooses among them, so that a
// flow keeps its way. The hash is that of v1model/routing.p4, bit by bit (Go package internal/ecmp);
// which member of a group it stands for is the chip's affair.

#ifndef HEADGATE_TNA_ROUTING_P4
#define HEADGATE_TNA_ROUTING_P4

// The hash of the flow and of the switch's seed. It stands beside what precedes Routing and shares
// its stages. Names are those of v1model's one control.
control FlowHash(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) five_tuple;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) queue_pair;

    // A table of a chip takes one hash, so the table says which.
    @id(ID_ACTION_HASH_FIVE_TUPLE)
    @name(".ingress.routing.hash_five_tuple")
    action hash_five_tuple(@id(1) bit<32> seed) {
        meta.target.by_queue_pair = 0;
        meta.target.seed = seed;
    }

    @id(ID_ACTION_HASH_QUEUE_PAIR)
    @name(".ingress.routing.hash_queue_pair")
    action hash_queue_pair(@id(1) bit<32> seed) {
        meta.target.by_queue_pair = 1;
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

    // A CRC is linear: a seed hashed with the flow would turn the hashes of all flows alike, and
    // switches in a row would choose alike. What an addition carries depends on the flow.
    @hidden
    action add_seed() {
        meta.target.hash_sum = meta.target.flow_hash + meta.target.seed;
        meta.target.hash_difference = meta.target.flow_hash - meta.target.seed;
    }

    apply {
        ecmp_hash.apply();
        if (meta.target.by_queue_pair == 1) {
            get_queue_pair();
        } else {
            get_five_tuple();
        }
        add_seed();
    }
}

control Routing(inout headers_t hdr, inout metadata_t meta) {
    // P4Info has one object for both the members and the groups: the members', which therefore
    // comes first and takes the annotations.
    @id(ID_SELECTOR_ECMP)
    @max_group_size(MAX_GROUP_MEMBERS)
    ActionProfile(ECMP_MEMBERS) ecmp;
    Hash<bit<ECMP_HASH_BITS>>(HashAlgorithm_t.CRC32) ecmp_hash;
    ActionSelector(ecmp, ecmp_hash, SelectorMode_t.FAIR, MAX_GROUP_MEMBERS, ECMP_GROUPS)
        ecmp_selector;

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
        implementation = ecmp_selector;
        size = ROUTE_ENTRIES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
        }
        // A packet that will be dropped is looked up too, and keeps the first reason.
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
