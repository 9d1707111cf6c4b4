// SPDX-License-Identifier: Apache-2.0
//
// Stamps the queueing delay into the maxQD option of TCP (int/maxqd/option.go), as v1model/maxqd_tcp.p4
// does. The egress parser finds the option, and only where the kinds and lengths of the options in front
// are the expected ones. Parser and deparser change the checksum by the difference (RFC 1624 equation 3).

#ifndef HEADGATE_TNA_MAXQD_TCP_P4
#define HEADGATE_TNA_MAXQD_TCP_P4

// Runs after MaxQd, which computes the queueing delay.
control MaxQdTcp(inout headers_t hdr, inout metadata_t meta) {
    @hidden
    action set_least(bit<16> least) {
        meta.target.least_len = least;
    }

    // The least length of IP that holds the TCP header: total length of IPv4, payload length of IPv6.
    // In a shorter packet, the option is in Ethernet's padding.
    @hidden
    table least_len {
        key = {
            hdr.tcp.data_offset : exact @name("data_offset");
            hdr.ipv6.isValid()  : exact @name("ipv6");
        }
        actions = { set_least; NoAction; }
        const entries = {
            (7, false)  : set_least(48);
            (10, false) : set_least(60);
            (12, false) : set_least(68);
            (13, false) : set_least(72);
            (14, false) : set_least(76);
            (15, false) : set_least(80);
            (7, true)   : set_least(28);
            (10, true)  : set_least(40);
            (12, true)  : set_least(48);
            (13, true)  : set_least(52);
            (14, true)  : set_least(56);
            (15, true)  : set_least(60);
        }
        const default_action = NoAction();
        size = 16;
    }

    @hidden
    action compare_ipv4() {
        meta.target.missing_len = meta.target.least_len |-| hdr.ipv4.total_len;
    }

    @hidden
    action compare_ipv6() {
        meta.target.missing_len = meta.target.least_len |-| hdr.ipv6.payload_len;
    }

    @hidden
    action compare() {
        meta.target.growth_tcp = meta.hop_qd |-| hdr.tcp_maxqd.max_qd;
    }

    @hidden
    action stamp() {
        hdr.tcp_maxqd.max_qd = meta.hop_qd;
        meta.target.stamped_tcp = 1;
    }

    apply {
        if (hdr.tcp_maxqd.isValid()) {
            least_len.apply();
        }
        if (hdr.ipv6.isValid()) {
            compare_ipv6();
        } else {
            compare_ipv4();
        }
        if (meta.stamping == 1) {
            compare();
        }
        if (hdr.tcp_maxqd.isValid() && meta.target.missing_len == 0) {
            if (meta.target.growth_tcp != 0) {
                stamp();
            }
        }
    }
}

#endif
