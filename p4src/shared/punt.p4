// SPDX-License-Identifier: Apache-2.0
//
// Frames that the controller wants instead of forwarding them: ARP, LLDP, packets to the
// switch's own addresses.

#ifndef HEADGATE_PUNT_P4
#define HEADGATE_PUNT_P4

control Punt(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_PUNT_TO_CPU)
    action punt_to_cpu(@id(1) bit<4> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.reason = reason;
        meta.egress_port = CPU_PORT;
        meta.decided = 1;
    }

    @id(ID_TABLE_PUNT)
    table punt_table {
        key = {
            hdr.ethernet.ether_type : ternary @id(1) @name("ether_type");
            meta.punt_addr          : ternary @id(2) @name("dst_addr");
        }
        actions = { punt_to_cpu; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PUNT_ENTRIES;
    }

    // A chip does not put fields from three places into one container at once.
    @hidden
    action tell_port() {
        hdr.packet_in.ingress_port = meta.arrival.port;
    }

    @hidden
    action tell_queue() {
        hdr.packet_in.queue = meta.bridged.queue;
    }

    apply {
        if (punt_table.apply().hit) {
            tell_port();
            tell_queue();
        }
    }
}

#endif
