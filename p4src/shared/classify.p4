// SPDX-License-Identifier: Apache-2.0
//
// Maps the DSCP of IP to the traffic class (the PFC priority) and to the egress queue. An ingress
// port may have its own map.

#ifndef HEADGATE_CLASSIFY_P4
#define HEADGATE_CLASSIFY_P4

control Classify(in headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_SET_CLASS)
    action set_class(@id(1) @name("class") class_id_t traffic_class, @id(2) queue_id_t queue) {
        meta.bridged.traffic_class = traffic_class;
        meta.bridged.queue = queue;
    }

    @id(ID_TABLE_DSCP_TO_CLASS)
    table dscp_to_class {
        key = { meta.target.dscp : exact @id(1) @name("dscp"); }
        actions = { set_class; }
        default_action = set_class(0, 0);
        size = DSCP_ENTRIES;
    }

    @id(ID_TABLE_CLASS_BY_PORT)
    table class_by_port {
        key = {
            meta.arrival.port : exact @id(1) @name("ingress_port");
            meta.target.dscp  : exact @id(2) @name("dscp");
        }
        actions = { set_class; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORT_DSCP_ENTRIES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            meta.target.dscp = hdr.ipv4.dscp;
        } else if (hdr.ipv6.isValid()) {
            meta.target.dscp = hdr.ipv6.dscp;
        }
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            dscp_to_class.apply();
            class_by_port.apply();
        }
    }
}

#endif
