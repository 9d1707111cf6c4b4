// SPDX-License-Identifier: Apache-2.0
//
// The order of the controls that decide on an arriving packet's memory.

#ifndef HEADGATE_V1MODEL_MEMORY_P4
#define HEADGATE_V1MODEL_MEMORY_P4

control Memory(inout metadata_t meta, in standard_metadata_t standard) {
    BufferPolicy() policy;
    PortState() port_state;
    SampleQueue() sample_queue;
    Gradient() gradient;
    ChoosePool() choose_pool;
    StoreSample() store_sample;
    UndoAdmission() undo_admission;
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
                    sample_queue.apply(meta, standard);
                    gradient.apply(meta);
                }
                choose_pool.apply(meta, standard);
                send_pause.apply(meta);
                if (meta.buffer.pool == POOL_NONE) {
                    undo_admission.apply(meta);
                } else if (meta.buffer.lossless == 1 && HAS(BUFFER_ESTIMATE)) {
                    store_sample.apply(meta, standard);
                }
            }
            if (meta.drop_reason != DROP_NONE && meta.buffer.lossless == 1) {
                count_lossless.apply(meta);
            }
        }
    }
}

#endif
