// SPDX-License-Identifier: Apache-2.0
//
// The metadata of one packet. The features see the switch only through these structures. The
// target's own controls (v1model/, tna/) set them from the target's metadata, and copy the results
// back. bridged_t of the target's target.p4 crosses from ingress to egress.

#ifndef HEADGATE_METADATA_P4
#define HEADGATE_METADATA_P4

// The target sets these before the ingress controls.
struct arrival_t {
    port_id_t port;
    bit<1>    truncated;    // the frame ended inside a header
    bit<1>    bad_checksum; // of IPv4
    bit<1>    beyond_frame; // IP's length exceeds the frame; 0 if the target does not know the length
}

// The target sets these before the egress controls.
struct departure_t {
    port_id_t port;
    bit<32>   delay;       // time in the queue, in target clock ticks
    bit<32>   queue_bytes; // bytes of the queue behind this packet
    bit<1>    queue_empty; // the queue is empty behind this packet
    bit<16>   draw;        // a uniform random number
}

// A flow that PACC's table lacks.
struct flow_digest_t {
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
    port_id_t   egress_port;
}

// The part of the buffer policy that concerns the packet. BufferPolicy sets it; without a policy, flags
// are 0. All sizes are in bytes.
struct buffer_t {
    bit<6>  flags;           // BUFFER_*
    bit<8>  class_mask;      // bit of the traffic class
    bit<1>  lossless;        // the traffic class is under PFC
    bit<32> shared;          // size of the shared pool
    bit<32> reserve;         // private bytes of each queue of the class
    bit<32> threshold;       // T, if it is fixed
    bit<3>  alpha_up;        // α as a shift to the left
    bit<4>  alpha_down;      // or to the right
    bit<32> resume_gap;      // δ, δq
    bit<32> port_resume_gap; // δp
    bit<4>  port_queues;     // Nq
    bit<32> window;          // of Algorithm 4, in target clock ticks
    bit<32> headroom;        // Φ of each queue, or of the port under DSH
    bit<32> refresh;         // interval of repeated PAUSEs, in ticks; 0 for none
    bit<1>  victim;          // under SPFC the port may use all of the shared pool
    bit<32> pool;            // POOL_* of the packet
}

// The variables of DSH's Algorithms 3 and 4 for the packet's ingress queue. Logarithms have 16
// fractional bits; gradients are in bytes per 2ⁿ ticks.
struct estimate_t {
    bit<8>  profile;      // of the port's link: rate and Φ
    bit<32> exponent;     // n, as a logarithm
    bit<32> limit;        // of |g|
    bit<32> length;       // of the queue, with the packet
    bit<1>  started;      // the queue had an earlier packet
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
    bit<1>  same_class;   // the port's last packet had this class too
    bit<1>  single;       // only this class for longer than the window: τ = 0
}

// The PFC frame that the packet, or its clone, becomes.
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
    target_t      target; // of the target's own controls

    // Ingress.
    bit<16>       l4_src_port; // 0 without a first TCP or UDP header
    bit<16>       l4_dst_port;
    bit<1>        decided;     // egress_port is final
    port_id_t     egress_port;
    drop_reason_t drop_reason; // the first reason found; DROP_NONE for a packet that goes on
    ipv4_addr_t   punt_addr;   // destination of IPv4; 0 for other frames
    bit<16>       payload_len; // of IP
    bit<16>       excess_len;  // UDP's length minus it; 0 if UDP is within
    bit<32>       queue_limit;
    bit<1>        refused;     // the queue was at its limit
    bit<32>       queue_bytes; // bytes of the queue in front of this packet
    bit<32>       congestion;  // that minus PACC's threshold; 0 below it
    bit<1>        learn;       // the flow is not in PACC's table

    // Egress.
    bit<16>       mark_probability; // in 1/65536
    bit<1>        mark_always;      // the probability is 1
    bit<1>        marked;
    bit<1>        stamping;
    bit<5>        scale;        // log2 of the maxQD unit in target clock ticks
    bit<32>       scaled_delay; // delay in maxQD units
    bit<16>       hop_qd;       // the same, saturating
    bit<16>       growth_qd;    // that minus the largest delay that the packet has met; 0 below it
    bit<16>       pfc_quanta;   // of a PFC frame
}

#endif
