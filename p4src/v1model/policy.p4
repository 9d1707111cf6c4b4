// SPDX-License-Identifier: Apache-2.0
//
// The policy of the packet buffer: the parameters of an ingress-managed MMU. buffer.p4 decides
// by them. The Go package headroom implements the same policy, and tables/buffer makes the
// entries.

#ifndef HEADGATE_V1MODEL_POLICY_P4
#define HEADGATE_V1MODEL_POLICY_P4

control BufferPolicy(inout metadata_t meta) {
    @id(ID_ACTION_SET_BUFFER_POLICY)
    @name(".ingress.buffer.set_buffer_policy")
    action set_buffer_policy(@id(1) bit<5> flags, @id(2) bit<8> lossless, @id(3) bit<32> shared,
                             @id(4) bit<32> private_pool, @id(5) bit<32> headroom_pool,
                             @id(6) bit<32> insurance_pool, @id(7) bit<32> private,
                             @id(8) bit<32> lossy_private, @id(9) bit<32> threshold,
                             @id(10) bit<3> alpha_up, @id(11) bit<4> alpha_down,
                             @id(12) bit<32> resume_gap, @id(13) bit<32> port_resume_gap,
                             @id(14) bit<4> port_queues, @id(15) bit<32> window,
                             @id(16) bit<32> period) {
        bit<8> mask = 8w1 << meta.bridged.traffic_class;
        meta.buffer.flags = 1w1 ++ flags;
        meta.buffer.class_mask = mask;
        meta.buffer.lossless = ((lossless & mask) != 0) ? 1w1 : 1w0;
        meta.buffer.shared = shared;
        meta.target.private_pool = private_pool;
        meta.target.headroom_pool = headroom_pool;
        meta.target.insurance_pool = insurance_pool;
        meta.buffer.reserve = ((lossless & mask) != 0) ? private : lossy_private;
        meta.buffer.threshold = threshold;
        meta.buffer.alpha_up = alpha_up;
        meta.buffer.alpha_down = alpha_down;
        meta.buffer.resume_gap = resume_gap;
        meta.buffer.port_resume_gap = port_resume_gap;
        meta.buffer.port_queues = port_queues;
        meta.buffer.window = window;
        meta.target.period = (bit<48>)period;
    }

    @id(ID_ACTION_DISABLE_BUFFER)
    @name(".ingress.buffer.disable_buffer")
    action disable_buffer() {
        meta.buffer.flags = 0;
    }

    @id(ID_TABLE_BUFFER_POLICY)
    @name(".ingress.buffer.buffer_policy")
    table buffer_policy {
        actions = { set_buffer_policy; disable_buffer; }
        default_action = disable_buffer();
        size = 1;
    }

    @id(ID_ACTION_SET_BUFFER_PORT)
    @name(".ingress.buffer.set_buffer_port")
    action set_buffer_port(@id(1) bit<32> headroom, @id(2) bit<32> refresh, @id(3) bit<8> profile,
                           @id(4) bit<32> exponent, @id(5) bit<32> gradient_limit,
                           @id(6) bit<32> depart_limit, @id(7) bit<32> response) {
        meta.bridged.accounted = 1;
        meta.buffer.headroom = headroom;
        meta.buffer.refresh = refresh;
        meta.estimate.profile = profile;
        meta.estimate.exponent = exponent;
        meta.estimate.limit = gradient_limit;
        meta.target.depart_limit = depart_limit;
        meta.target.response = response;
    }

    @id(ID_TABLE_BUFFER_PORT)
    @name(".ingress.buffer.buffer_port")
    table buffer_port {
        key = { meta.arrival.port : exact @id(1) @name("ingress_port"); }
        actions = { set_buffer_port; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORT_CELLS;
    }

    apply {
        buffer_policy.apply();
        if (meta.buffer.flags & BUFFER_ON != 0) {
            buffer_port.apply();
        }
    }
}

#endif
