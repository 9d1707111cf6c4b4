// SPDX-License-Identifier: Apache-2.0
//
// Söze's stamp: the largest queueing delay that a packet has met. The unit of the delay is the same in
// the whole fabric: the target's clock tick (1 µs on BMv2) times a power of two, which is a parameter
// of the switch. Each target has its own ScaleDelay, because a chip has no shift by a field.

#ifndef HEADGATE_MAXQD_P4
#define HEADGATE_MAXQD_P4

control MaxQd(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_SET_SCALE)
    action set_scale(@id(1) bit<5> shift) {
        meta.scale = shift;
        meta.stamping = 1;
    }

    // Delays in poll reports are in ticks then.
    @id(ID_ACTION_DISABLE_STAMPING)
    action disable_stamping() {
        meta.scale = 0;
        meta.stamping = 0;
    }

    @id(ID_TABLE_MAXQD_SCALE)
    table maxqd_scale {
        actions = { set_scale; disable_stamping; }
        default_action = set_scale(0);
        size = 1;
    }

    @hidden
    action fit() {
        meta.hop_qd = meta.scaled_delay[15:0];
    }

    @hidden
    action saturate() {
        meta.hop_qd = SATURATED_16;
    }

    @hidden
    action compare() {
        meta.growth_qd = meta.hop_qd |-| hdr.maxqd.max_qd;
    }

    @hidden
    action stamp() {
        hdr.maxqd.max_qd = meta.hop_qd;
        // The sender's checksum is wrong now; 0 means no checksum (RFC 768).
        hdr.udp.checksum = 0;
    }

    ScaleDelay() scale_delay;

    apply {
        maxqd_scale.apply();
        scale_delay.apply(meta);
        if (meta.scaled_delay[31:16] == 0) {
            fit();
        } else {
            saturate();
        }
        if (meta.stamping == 1) {
            compare();
        }
        if (hdr.maxqd.isValid() && hdr.maxqd.echo == 0 && meta.growth_qd != 0) {
            stamp();
        }
    }
}

#endif
