// SPDX-License-Identifier: Apache-2.0
//
// Turns a packet into a PFC frame (IEEE 802.1Q clause 36): MAC control to the reserved multicast
// address, a vector of classes and their times, 60 bytes without FCS. The packet's headers are
// removed, and the target truncates its payload.

#ifndef HEADGATE_V1MODEL_PFC_P4
#define HEADGATE_V1MODEL_PFC_P4

#define PFC_TIME(class) ((meta.signal.classes[class:class] == 1) ? meta.pfc_quanta : 16w0)

control Pfc(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_SET_PFC_PORT)
    @name(".egress.pfc.set_pfc_port")
    action set_pfc_port(@id(1) mac_t src_mac, @id(2) bit<16> quanta) {
        hdr.ethernet.src_addr = src_mac;
        meta.pfc_quanta = quanta;
    }

    @id(ID_TABLE_PFC_PORT)
    @name(".egress.pfc.pfc_port")
    table pfc_port {
        key = { meta.departure.port : exact @id(1) @name("egress_port"); }
        actions = { set_pfc_port; }
        default_action = set_pfc_port(0, 0xffff);
        size = PORT_CELLS;
    }

    @hidden
    action clear() {
        hdr.packet_in.setInvalid();
        hdr.poll_report.setInvalid();
        hdr.buffer_report.setInvalid();
        hdr.arp.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.ipv6.setInvalid();
        hdr.icmp.setInvalid();
        hdr.nd.setInvalid();
        hdr.nd_option.setInvalid();
        hdr.udp.setInvalid();
        hdr.maxqd.setInvalid();
        hdr.bth.setInvalid();
        hdr.tcp.setInvalid();
        hdr.tcp_first.setInvalid();
        hdr.tcp_second.setInvalid();
        hdr.tcp_block_2.setInvalid();
        hdr.tcp_block_3.setInvalid();
        hdr.tcp_maxqd.setInvalid();
        hdr.ethernet.setValid();
        hdr.ethernet.dst_addr = MAC_CONTROL_ADDRESS;
        hdr.ethernet.ether_type = ETHER_TYPE_MAC_CONTROL;
        hdr.mac_control.setValid();
        hdr.mac_control.opcode = MAC_CONTROL_PFC;
        hdr.pfc.setValid();
        hdr.pfc_padding.setValid();
        hdr.pfc_padding.zero = 0;
    }

    @hidden
    action fill() {
        hdr.pfc.reserved = 0;
        // The controller's refresh names all classes, because the peer may have restarted.
        hdr.pfc.class_enable = (meta.bridged.refresh == 1) ? 8w0xff : meta.signal.classes;
        hdr.pfc.time_0 = PFC_TIME(0);
        hdr.pfc.time_1 = PFC_TIME(1);
        hdr.pfc.time_2 = PFC_TIME(2);
        hdr.pfc.time_3 = PFC_TIME(3);
        hdr.pfc.time_4 = PFC_TIME(4);
        hdr.pfc.time_5 = PFC_TIME(5);
        hdr.pfc.time_6 = PFC_TIME(6);
        hdr.pfc.time_7 = PFC_TIME(7);
    }

    apply {
        clear();
        pfc_port.apply();
        if (meta.signal.kind == SIGNAL_RESUME) {
            meta.pfc_quanta = 0;
        }
        fill();
    }
}

#endif
