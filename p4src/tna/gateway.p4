// SPDX-License-Identifier: Apache-2.0
//
// Makes a leaf the gateway of its hosts, as v1model/gateway.p4 does: it answers ARP (RFC 826), neighbour
// solicitations (RFC 4861) and echo requests. Answers leave by the port on which the request came.

#ifndef HEADGATE_TNA_GATEWAY_P4
#define HEADGATE_TNA_GATEWAY_P4

#ifdef PIPELINE_IS_GATEWAY
control Gateway(inout headers_t hdr, inout metadata_t meta) {
    @hidden
    action compare_arp() {
        meta.target.differs_ipv4 = hdr.arp.sender_addr ^ hdr.arp.target_addr;
    }

    @hidden
    action compare_nd() {
        meta.target.differs_ipv6 = hdr.ipv6.src_addr ^ hdr.nd.target;
    }

    @hidden
    action ask_arp() {
        meta.target.asks = ASKS_ARP;
        meta.target.asked_ipv4 = hdr.arp.target_addr;
    }

    @hidden
    action ask_echo_ipv4() {
        meta.target.asks = ASKS_ECHO_IPV4;
        meta.target.asked_ipv4 = hdr.ipv4.dst_addr;
    }

    // Finds requests. Announcements and probes for duplicate addresses are not answered (RFC 5227).
    @hidden
    table request_ipv4 {
        key = {
            hdr.arp.isValid()        : ternary @name("arp");
            hdr.arp.hardware         : ternary @name("hardware");
            hdr.arp.protocol         : ternary @name("protocol");
            hdr.arp.hardware_len     : ternary @name("hardware_len");
            hdr.arp.protocol_len     : ternary @name("protocol_len");
            hdr.arp.operation        : ternary @name("operation");
            hdr.arp.sender_addr      : ternary @name("sender_addr");
            meta.target.differs_ipv4 : ternary @name("differs");
            hdr.ipv4.isValid()       : ternary @name("ipv4");
            hdr.icmp.isValid()       : ternary @name("icmp");
            hdr.icmp.type            : ternary @name("type");
            hdr.icmp.code            : ternary @name("code");
        }
        actions = { ask_arp; ask_echo_ipv4; NoAction; }
        const entries = {
            (true, _, _, _, _, _, 0, _, _, _, _, _) : NoAction();
            (true, _, _, _, _, _, _, 0, _, _, _, _) : NoAction();
            (true, ARP_ETHERNET, ETHER_TYPE_IPV4, 6, 4, ARP_REQUEST, _, _, _, _, _, _) : ask_arp();
            (_, _, _, _, _, _, _, _, true, true, ICMP_ECHO, 0) : ask_echo_ipv4();
        }
        const default_action = NoAction();
        size = 4;
    }

    @hidden
    action ask_neighbor() {
        meta.target.asks = ASKS_NEIGHBOR;
        meta.target.asked_ipv6 = hdr.nd.target;
    }

    @hidden
    action ask_echo_ipv6() {
        meta.target.asks = ASKS_ECHO_IPV6;
        meta.target.asked_ipv6 = hdr.ipv6.dst_addr;
    }

    // RFC 4862 §5.4: a probe for a duplicate address has no source. The chip does not verify the checksum
    // of ICMPv6.
    @hidden
    table request_ipv6 {
        key = {
            hdr.nd.isValid()         : ternary @name("nd");
            hdr.icmp.code            : ternary @name("code");
            hdr.ipv6.hop_limit       : ternary @name("hop_limit");
            hdr.ipv6.src_addr        : ternary @name("src_addr");
            meta.target.differs_ipv6 : ternary @name("differs");
            hdr.nd_option.isValid()  : ternary @name("nd_option");
            hdr.nd_option.type       : ternary @name("option_type");
            hdr.nd_option.length     : ternary @name("option_length");
            hdr.ipv6.isValid()       : ternary @name("ipv6");
            hdr.icmp.isValid()       : ternary @name("icmp");
            hdr.icmp.type            : ternary @name("type");
        }
        actions = { ask_neighbor; ask_echo_ipv6; NoAction; }
        const entries = {
            (true, _, _, 0, _, _, _, _, _, _, _) : NoAction();
            (true, _, _, _, 0, _, _, _, _, _, _) : NoAction();
            (true, 0, ND_HOP_LIMIT, _, _, false, _, _, _, _, _) : ask_neighbor();
            (true, 0, ND_HOP_LIMIT, _, _, true, ND_SOURCE_MAC, 1, _, _, _) : ask_neighbor();
            (_, 0, _, _, _, _, _, _, true, true, ICMPV6_ECHO) : ask_echo_ipv6();
        }
        const default_action = NoAction();
        size = 8;
    }

    @id(ID_ACTION_OWN_IPV4)
    action own_ipv4(@id(1) mac_t mac) {
        meta.target.gateway_mac = mac;
        meta.target.own = 1;
        meta.target.answers = 1;
    }

    @id(ID_ACTION_PROXY_IPV4)
    action proxy_ipv4(@id(1) mac_t mac) {
        meta.target.gateway_mac = mac;
        meta.target.answers = 1;
    }

    @id(ID_TABLE_GATEWAY_IPV4)
    table gateway_ipv4 {
        key = { meta.target.asked_ipv4 : lpm @id(1) @name("addr"); }
        actions = { own_ipv4; proxy_ipv4; @defaultonly NoAction; }
        const default_action = NoAction();
        size = GATEWAY_ENTRIES;
    }

    @id(ID_ACTION_OWN_IPV6)
    action own_ipv6(@id(1) mac_t mac) {
        meta.target.gateway_mac = mac;
        meta.target.own = 1;
        meta.target.answers = 1;
    }

    @id(ID_ACTION_PROXY_IPV6)
    action proxy_ipv6(@id(1) mac_t mac) {
        meta.target.gateway_mac = mac;
        meta.target.answers = 1;
    }

    @id(ID_TABLE_GATEWAY_IPV6)
    table gateway_ipv6 {
        key = { meta.target.asked_ipv6 : lpm @id(1) @name("addr"); }
        actions = { own_ipv6; proxy_ipv6; @defaultonly NoAction; }
        const default_action = NoAction();
        size = GATEWAY_ENTRIES;
    }

    @hidden
    action answer() {
        hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
        hdr.ethernet.src_addr = meta.target.gateway_mac;
        meta.egress_port = meta.arrival.port;
        meta.decided = 1;
    }

    // The queue does not wait behind data.
    @hidden
    action hurry() {
        meta.bridged.queue = HIGHEST_QUEUE;
    }

    @hidden
    action answer_arp() {
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_addr = hdr.arp.sender_addr;
        hdr.arp.sender_mac = meta.target.gateway_mac;
        hdr.arp.sender_addr = meta.target.asked_ipv4;
    }

    @hidden
    action advertise() {
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = meta.target.asked_ipv6;
        hdr.ipv6.payload_len = ND_BYTES_WITH_OPTION;
        hdr.icmp.type = ICMPV6_NEIGHBOR_ADVERTISEMENT;
        hdr.nd_option.setValid();
        hdr.nd_option.type = ND_TARGET_MAC;
        hdr.nd_option.length = 1;
        hdr.nd_option.mac = meta.target.gateway_mac;
        meta.target.advertises = 1;
    }

    // The gateway's advertisement has the router flag. A proxy's does not override (RFC 4861 §7.2.8).
    @hidden
    action flag_router() {
        hdr.nd.flags = ND_ROUTER | ND_SOLICITED | ND_OVERRIDE;
    }

    @hidden
    action flag_proxy() {
        hdr.nd.flags = ND_SOLICITED;
    }

    @hidden
    action echo_ipv4() {
        hdr.icmp.type = ICMP_ECHO_REPLY;
        hdr.ipv4.dst_addr = hdr.ipv4.src_addr;
        hdr.ipv4.src_addr = meta.target.asked_ipv4;
        hdr.ipv4.ttl = GATEWAY_TTL;
    }

    @hidden
    action sum_ipv4() {
        hdr.icmp.checksum = hdr.icmp.checksum + 0x0800;
    }

    @hidden
    action sum_ipv4_carry() {
        hdr.icmp.checksum = hdr.icmp.checksum + 0x0801;
    }

    @hidden
    action echo_ipv6() {
        hdr.icmp.type = ICMPV6_ECHO_REPLY;
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = meta.target.asked_ipv6;
        hdr.ipv6.hop_limit = GATEWAY_TTL;
    }

    @hidden
    action sum_ipv6() {
        hdr.icmp.checksum = hdr.icmp.checksum + 0xff00;
    }

    @hidden
    action sum_ipv6_carry() {
        hdr.icmp.checksum = hdr.icmp.checksum + 0xfeff;
    }

    // The checksum changes by the difference of the types (RFC 1624), 0x0800 for IPv4 and 0x0100 for
    // IPv6, with the carry. Swapping the addresses does not change the checksum.
    @hidden
    table change_checksum {
        key = {
            meta.target.asks  : ternary @name("asks");
            hdr.icmp.checksum : ternary @name("checksum");
        }
        actions = { sum_ipv4; sum_ipv4_carry; sum_ipv6; sum_ipv6_carry; NoAction; }
        const entries = {
            (ASKS_ECHO_IPV4, 0xf800 &&& 0xf800) : sum_ipv4_carry();
            (ASKS_ECHO_IPV4, _)                 : sum_ipv4();
            (ASKS_ECHO_IPV6, 0 &&& 0xff00)      : sum_ipv6_carry();
            (ASKS_ECHO_IPV6, 0x0100)            : sum_ipv6_carry();
            (ASKS_ECHO_IPV6, _)                 : sum_ipv6();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        compare_arp();
        compare_nd();
        if (meta.arrival.port != CPU_PORT) {
            request_ipv4.apply();
        }
        if (meta.arrival.port != CPU_PORT) {
            request_ipv6.apply();
        }
        if (meta.target.asks == ASKS_ARP || meta.target.asks == ASKS_ECHO_IPV4) {
            gateway_ipv4.apply();
        } else if (meta.target.asks == ASKS_NEIGHBOR || meta.target.asks == ASKS_ECHO_IPV6) {
            gateway_ipv6.apply();
        }
        if (meta.target.answers == 1 && meta.target.asks == ASKS_ARP) {
            answer_arp();
        } else if (meta.target.answers == 1 && meta.target.asks == ASKS_NEIGHBOR) {
            advertise();
            if (meta.target.own == 1) {
                flag_router();
            } else {
                flag_proxy();
            }
        } else if (meta.target.own == 1 && meta.target.asks == ASKS_ECHO_IPV4) {
            echo_ipv4();
        } else if (meta.target.own == 1 && meta.target.asks == ASKS_ECHO_IPV6) {
            echo_ipv6();
        }
        if (meta.target.own == 1) {
            change_checksum.apply();
        }
        if (meta.target.answers == 1) {
            if (meta.target.asks == ASKS_ARP || meta.target.asks == ASKS_NEIGHBOR) {
                hurry();
                answer();
            } else if (meta.target.own == 1) {
                answer();
            }
        }
    }
}
#endif

#endif
