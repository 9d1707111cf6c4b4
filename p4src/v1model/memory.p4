// SPDX-License-Identifier: Apache-2.0
//
// The order of the controls that decide on an arriving packet's memory.

#ifndef HEADGATE_V1MODEL_MEMORY_P4
#define HEADGATE_V1MODEL_MEMORY_P4

control Memory(inout metadata_t meta, in standard_metadata_t standard) {
    BufferPolicy() policy;
    PortState() port_state;
    Observe() observe;
    Gradient() gradient;
    Place() place;
    Remember() remember;
    Refuse() refuse;
    SendPause() send_pause;
    CountLossless() count_lossless;

    apply {
        policy.apply(meta);
        if (meta.bridged.accounted == 1) {
            if (meta.drop_reason == DROP_NONE) {
                if (meta.buffer.lossless == 1 && HAS(BUFFER_VICTIMS)) {
                    port_state.apply(meta, standard);
                }
                if (meta.buffer.lossless == 1 && HAS(BUFFER_ESTIMATE)) {
                    observe.apply(meta, standard);
                    gradient.apply(meta);
                }
                place.apply(meta, standard);
                send_pause.apply(meta);
                if (meta.buffer.pool == POOL_NONE) {
                    refuse.apply(meta);
                } else if (meta.buffer.lossless == 1 && HAS(BUFFER_ESTIMATE)) {
                    remember.apply(meta, standard);
                }
            }
            if (meta.drop_reason != DROP_NONE && meta.buffer.lossless == 1) {
                count_lossless.apply(meta);
            }
        }
    }
}

#endif
