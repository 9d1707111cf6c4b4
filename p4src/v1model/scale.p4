// SPDX-License-Identifier: Apache-2.0
//
// The queueing delay in maxQD units.

#ifndef HEADGATE_V1MODEL_SCALE_P4
#define HEADGATE_V1MODEL_SCALE_P4

control ScaleDelay(inout metadata_t meta) {
    @hidden
    action shift() {
        meta.scaled_delay = meta.departure.delay >> meta.scale;
    }

    apply {
        shift();
        // Bytes that look like a shim may be anything in a packet that Foreign marked.
        if (meta.target.foreign == 1) {
            meta.stamping = 0;
        }
    }
}

#endif
