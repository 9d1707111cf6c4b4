// SPDX-License-Identifier: Apache-2.0
//
// Checks source addresses at edge ports (RFC 2827). A port with entries forwards IPv4 only from
// the sources that they permit. A port without entries is not checked.

#ifndef HEADGATE_SOURCE_CHECK_P4
#define HEADGATE_SOURCE_CHECK_P4

control SourceCheck(in headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_PERMIT_SOURCE)
    @name(".ingress.source_check.permit_source")
    action permit_source() {}

    @id(ID_ACTION_REFUSE_SOURCE)
    @name(".ingress.source_check.refuse_source")
    action refuse_source() {
        REFUSE_SOURCE;
    }

    @id(ID_TABLE_SOURCE_CHECK)
    @name(".ingress.source_check.source_check")
    table source_check {
        key = {
            meta.arrival.port : exact @id(1) @name("ingress_port");
            hdr.ipv4.src_addr : lpm @id(2) @name("src_addr");
        }
        actions = { permit_source; refuse_source; @defaultonly NoAction; }
        const default_action = NoAction();
        size = SOURCE_CHECK_ENTRIES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            source_check.apply();
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
        REFUSE_SOURCE;
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
        size = SOURCE_CHECK_IPV6_ENTRIES;
    }

    apply {
        if (hdr.ipv6.isValid()) {
            source_check_ipv6.apply();
        }
    }
}

#endif
