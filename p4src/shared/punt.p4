// SPDX-License-Identifier: Apache-2.0
//
// Sends frames to the controller instead of forwarding them: ARP, LLDP, packets to the switch's own
// addresses.

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

    // Two actions, because one action of a chip does not write a container from three places. Each has a
    // condition of its own, because a chip runs a branch of several stages before everything else.
    @hidden
    action tell_port() {
        hdr.packet_in.ingress_port = meta.arrival.port;
    }

    @hidden
    action tell_queue() {
        hdr.packet_in.queue = meta.bridged.queue;
    }

    apply {
        if (meta.decided == 0) {
            punt_table.apply();
        }
        if (hdr.packet_in.isValid()) {
            tell_port();
        }
        if (hdr.packet_in.isValid()) {
            tell_queue();
        }
    }
}

#endif
