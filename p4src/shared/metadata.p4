// SPDX-License-Identifier: Apache-2.0
//
// What the controls of one packet tell each other. The features see the switch only
// through these structures; the target's own controls (v1model/, tna/) fill them in and
// carry them out. What crosses from ingress to egress is bridged_t of the target's
// target.p4.

#ifndef HEADGATE_METADATA_P4
#define HEADGATE_METADATA_P4

// Filled in by the target before the ingress controls.
struct arrival_t {
    port_id_t port;
    bit<1>    truncated;    // the frame ended inside a header
    bit<1>    bad_checksum; // of IPv4
    bit<1>    beyond_frame; // IPv4's total length; 0 if the target cannot tell
}

// Filled in by the target before the egress controls.
struct departure_t {
    port_id_t port;
    bit<32>   delay;       // time in the queue, in target clock ticks
    bit<32>   queue_bytes; // what stays in the queue behind this packet
    bit<1>    queue_empty; // nothing stays behind
    bit<16>   draw;        // a random number, uniform
}

// A flow that PACC's table lacks.
struct flow_digest_t {
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
    port_id_t   egress_port;
}

// The buffer policy as far as it matters for the packet; set by BufferPolicy for all, or
// with flags 0 when there is none. All sizes are in bytes.
struct buffer_t {
    bit<6>  flags;           // BUFFER_*
    bit<8>  class_mask;      // bit of the traffic class
    bit<1>  lossless;        // the traffic class is under PFC
    bit<32> shared;          // size of the shared pool
    bit<32> reserve;         // private bytes of each queue of the class
    bit<32> threshold;       // T, when it is not dynamic
    bit<3>  alpha_up;        // α as a shift, one way
    bit<4>  alpha_down;      // or the other
    bit<32> resume_gap;      // δ, δq
    bit<32> port_resume_gap; // δp
    bit<4>  port_queues;     // Nq
    bit<32> window;          // of Algorithm 4, in target clock ticks
    bit<32> headroom;        // Φ: of each queue, or with DSH of the port
    bit<32> refresh;         // a PAUSE is repeated so often, in ticks; 0 for never
    bit<1>  victim;          // SPFC gives the port all of the shared pool
    bit<32> pool;            // where the packet is: POOL_*
}

// DSH's Algorithms 3 and 4 for the packet's ingress queue. Logarithms have 16 fractional
// bits, gradients are in bytes per 2ⁿ ticks.
struct estimate_t {
    bit<8>  profile;      // of the port's link: rate and Φ
    bit<32> exponent;     // n, as a logarithm
    bit<32> limit;        // of |g|
    bit<32> length;       // of the queue, with the packet
    bit<1>  started;      // the queue has had a packet before
    bit<1>  shrinks;      // Δq < 0
    bit<32> growth;       // |Δq|
    bit<32> elapsed;      // Δt, saturating
    bit<32> log_bytes;    // log2 |Δq|
    bit<32> log_ticks;    // log2 Δt
    bit<1>  fraction;     // the gradient is below 1
    bit<32> log_gradient;
    bit<32> gradient;     // |g|
    bit<32> average;      // g_avg, two's complement
    bit<32> deviation;    // v_avg
    bit<32> steepness;    // ĝ − 1, two's complement
    bit<32> phi;          // φ̂
    bit<1>  same_class;   // as the port's packet before
    bit<1>  single;       // only this class for longer than the window: τ = 0
}

// A PFC frame to be made, of the packet or of a clone of it.
struct signal_t {
    @field_list(SIGNAL_LIST)
    bit<8> classes;
    @field_list(SIGNAL_LIST)
    bit<2> kind; // SIGNAL_*
}

struct metadata_t {
    bridged_t     bridged;
    arrival_t     arrival;
    departure_t   departure;
    buffer_t      buffer;
    estimate_t    estimate;
    signal_t      signal;
    target_t      target; // what only the target's controls know

    // Ingress.
    bit<16>       l4_src_port; // 0 without a first TCP or UDP header
    bit<16>       l4_dst_port;
    bit<1>        decided;     // egress_port is final
    port_id_t     egress_port;
    drop_reason_t drop_reason; // the first reason found; DROP_NONE lives on
    ipv4_addr_t   punt_addr;   // IPv4 destination, 0 for other frames
    bit<16>       payload_len; // of IPv4
    bit<16>       excess_len;  // by how much UDP's length is beyond it
    bit<32>       queue_limit;
    bit<1>        refused;     // the queue was at its limit
    bit<32>       queue_bytes; // what the queue held before this packet
    bit<32>       congestion;  // by how much that is above PACC's threshold
    bit<1>        learn;       // the flow is not in PACC's table

    // Egress.
    bit<32>       cells;            // queue depth in 64-byte cells
    bit<16>       depth;            // the same, saturating
    bit<16>       mark_probability; // in 1/65536
    bit<1>        mark_always;      // it is 1
    bit<1>        marked;
    bit<1>        stamping;
    bit<5>        scale;        // log2 of the maxQD unit in target clock ticks
    bit<32>       scaled_delay; // delay in maxQD units
    bit<16>       hop_qd;       // the same, saturating
    bit<16>       growth_qd;    // by how much that is above what the packet has met
    bit<16>       pfc_quanta;   // of a PFC frame
}

#endif
