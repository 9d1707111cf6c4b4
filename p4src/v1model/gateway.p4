// SPDX-License-Identifier: Apache-2.0
//
// Makes a leaf the gateway of its hosts. It answers ARP (RFC 826) and neighbour solicitations
// (RFC 4861) for the gateway's address, and for other prefixes as a proxy. It answers echo requests
// to the gateway's address. Answers leave by the port on which the request came.

#ifndef HEADGATE_V1MODEL_GATEWAY_P4
#define HEADGATE_V1MODEL_GATEWAY_P4

control Gateway(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_OWN_IPV4)
    action own_ipv4(@id(1) mac_t mac) {
        meta.target.gateway_mac = mac;
        meta.target.own = 1;
    }

    @id(ID_ACTION_PROXY_IPV4)
    action proxy_ipv4(@id(1) mac_t mac) {
        meta.target.gateway_mac = mac;
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
    }

    @id(ID_ACTION_PROXY_IPV6)
    action proxy_ipv6(@id(1) mac_t mac) {
        meta.target.gateway_mac = mac;
    }

    @id(ID_TABLE_GATEWAY_IPV6)
    table gateway_ipv6 {
        key = { meta.target.asked_ipv6 : lpm @id(1) @name("addr"); }
        actions = { own_ipv6; proxy_ipv6; @defaultonly NoAction; }
        const default_action = NoAction();
        size = GATEWAY_ENTRIES;
    }

    // Answers have the highest queue, so that they do not wait behind data.
    @hidden
    action answer(mac_t mac) {
        hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
        hdr.ethernet.src_addr = mac;
        meta.egress_port = meta.arrival.port;
        meta.decided = 1;
    }

    @hidden
    action answer_arp() {
        ipv4_addr_t asked = hdr.arp.target_addr;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_addr = hdr.arp.sender_addr;
        hdr.arp.sender_mac = meta.target.gateway_mac;
        hdr.arp.sender_addr = asked;
        meta.bridged.queue = HIGHEST_QUEUE;
    }

    // The gateway's advertisement has the router flag. A proxy's does not override (RFC 4861 §7.2.8).
    @hidden
    action advertise() {
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = hdr.nd.target;
        hdr.ipv6.payload_len = ND_BYTES_WITH_OPTION;
        hdr.icmp.type = ICMPV6_NEIGHBOR_ADVERTISEMENT;
        hdr.nd.flags = (meta.target.own == 1) ? ND_ROUTER | ND_SOLICITED | ND_OVERRIDE : ND_SOLICITED;
        hdr.nd_option.setValid();
        hdr.nd_option.type = ND_TARGET_MAC;
        hdr.nd_option.length = 1;
        hdr.nd_option.mac = meta.target.gateway_mac;
        meta.target.advertises = 1;
        meta.bridged.queue = HIGHEST_QUEUE;
    }

    // The checksum changes by the difference of the types (RFC 1624). Swapping the addresses does
    // not change it.
    @hidden
    action answer_echo_ipv4() {
        bit<32> sum = (bit<32>)hdr.icmp.checksum + 0x0800;
        ipv4_addr_t own = hdr.ipv4.dst_addr;
        hdr.icmp.type = ICMP_ECHO_REPLY;
        hdr.icmp.checksum = sum[15:0] + sum[31:16];
        hdr.ipv4.dst_addr = hdr.ipv4.src_addr;
        hdr.ipv4.src_addr = own;
        hdr.ipv4.ttl = GATEWAY_TTL;
    }

    @hidden
    action answer_echo_ipv6() {
        bit<32> sum = (bit<32>)hdr.icmp.checksum + 0xfeff;
        ipv6_addr_t own = hdr.ipv6.dst_addr;
        hdr.icmp.type = ICMPV6_ECHO_REPLY;
        hdr.icmp.checksum = sum[15:0] + sum[31:16];
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = own;
        hdr.ipv6.hop_limit = GATEWAY_TTL;
    }

    apply {
        // Announcements and probes for duplicate addresses are not answered (RFC 5227, RFC 4862
        // §5.4).
        bool arp = hdr.arp.isValid() && hdr.arp.hardware == ARP_ETHERNET && hdr.arp.protocol == ETHER_TYPE_IPV4 &&
            hdr.arp.hardware_len == 6 && hdr.arp.protocol_len == 4 && hdr.arp.operation == ARP_REQUEST &&
            hdr.arp.sender_addr != 0 && hdr.arp.sender_addr != hdr.arp.target_addr;
        bool solicitation = hdr.nd.isValid() && hdr.icmp.code == 0 && hdr.ipv6.hop_limit == ND_HOP_LIMIT &&
            meta.arrival.bad_checksum == 0 && hdr.ipv6.src_addr != 0 && hdr.ipv6.src_addr != hdr.nd.target &&
            (!hdr.nd_option.isValid() || (hdr.nd_option.type == ND_SOURCE_MAC && hdr.nd_option.length == 1));
        bool echo_ipv4 = hdr.ipv4.isValid() && hdr.icmp.isValid() && hdr.icmp.type == ICMP_ECHO && hdr.icmp.code == 0;
        bool echo_ipv6 = hdr.ipv6.isValid() && hdr.icmp.isValid() && hdr.icmp.type == ICMPV6_ECHO && hdr.icmp.code == 0;
        meta.target.own = 0;
        meta.target.gateway_mac = 0;
        if (arp || echo_ipv4) {
            meta.target.asked_ipv4 = arp ? hdr.arp.target_addr : hdr.ipv4.dst_addr;
            gateway_ipv4.apply();
        } else if (solicitation || echo_ipv6) {
            meta.target.asked_ipv6 = solicitation ? hdr.nd.target : hdr.ipv6.dst_addr;
            gateway_ipv6.apply();
        }
        if (meta.target.gateway_mac != 0) {
            if (arp) {
                answer_arp();
                answer(meta.target.gateway_mac);
            } else if (solicitation) {
                advertise();
                answer(meta.target.gateway_mac);
            } else if (meta.target.own == 1) {
                if (echo_ipv4) {
                    answer_echo_ipv4();
                } else {
                    answer_echo_ipv6();
                }
                answer(meta.target.gateway_mac);
            }
        }
    }
}

#endif
