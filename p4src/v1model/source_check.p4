// SPDX-License-Identifier: Apache-2.0
//
// Checks source addresses at edge ports (RFC 2827). A port with entries forwards IPv4 only from
// the sources that they permit. A port without entries is not checked.

#ifndef HEADGATE_V1MODEL_SOURCE_CHECK_P4
#define HEADGATE_V1MODEL_SOURCE_CHECK_P4

control SourceCheck(in headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_PERMIT_SOURCE)
    @name(".ingress.source_check.permit_source")
    action permit_source() {}

    @id(ID_ACTION_REFUSE_SOURCE)
    @name(".ingress.source_check.refuse_source")
    action refuse_source() {
        meta.drop_reason = DROP_SOURCE;
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

#endif
