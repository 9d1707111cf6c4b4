// SPDX-License-Identifier: Apache-2.0
//
// What the controls of one packet tell each other. The features see the switch only
// through these structures; the target's own controls (v1model/) fill them in and carry
// them out.

#ifndef HEADGATE_METADATA_P4
#define HEADGATE_METADATA_P4

// What crosses from ingress to egress with the packet. v1model carries all metadata;
// a target that does not makes this a header in front of the packet.
struct bridged_t {
    bit<32>    frame_bytes;   // as on the wire, without FCS and controller header
    class_id_t traffic_class;
    queue_id_t queue;
    bit<1>     poll;          // a poll: its egress answers instead of forwarding
}

// Filled in by the target before the ingress controls.
struct arrival_t {
    port_id_t port;
    bit<1>    truncated;    // the frame ended inside a header
    bit<1>    bad_checksum; // of IPv4
}

// Filled in by the target before the egress controls.
struct departure_t {
    port_id_t port;
    bit<32>   delay;       // time in the queue, in target clock ticks
    bit<32>   queue_bytes; // what stays in the queue behind this packet
    bit<1>    queue_empty; // nothing stays behind
    bit<16>   draw;        // a random number, uniform
}

struct metadata_t {
    bridged_t     bridged;
    arrival_t     arrival;
    departure_t   departure;

    // Ingress.
    bit<16>       l4_src_port; // 0 without a first TCP or UDP header
    bit<16>       l4_dst_port;
    bit<1>        decided;     // egress_port is final
    port_id_t     egress_port;
    drop_reason_t drop_reason; // the first reason found; DROP_NONE lives on
    ipv4_addr_t   punt_addr;   // IPv4 destination, 0 for other frames
    bit<32>       queue_limit;
    bit<1>        refused;     // the queue was at its limit

    // Egress.
    bit<16>       depth;            // queue depth in 64-byte cells, saturating
    bit<17>       mark_probability; // in 1/65536
    bit<1>        marked;
    bit<1>        stamping;
    bit<32>       scaled_delay; // delay in maxQD units
    bit<16>       hop_qd;       // the same, saturating
}

#endif
