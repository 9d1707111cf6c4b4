// SPDX-License-Identifier: Apache-2.0
//
// Söze's stamp: the largest queueing delay that a packet has met. The delay is the
// target's clock tick (1 µs on BMv2) shifted right; the unit is the same in the whole
// fabric, so the shift is a parameter of the switch.

#ifndef HEADGATE_MAXQD_P4
#define HEADGATE_MAXQD_P4

control MaxQd(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ACTION_SET_SCALE)
    action set_scale(@id(1) bit<5> shift) {
        meta.scaled_delay = meta.departure.delay >> shift;
        meta.stamping = 1;
    }

    // Delays in poll reports are then in ticks.
    @id(ID_ACTION_DISABLE_STAMPING)
    action disable_stamping() {
        meta.scaled_delay = meta.departure.delay;
        meta.stamping = 0;
    }

    @id(ID_TABLE_MAXQD_SCALE)
    table maxqd_scale {
        actions = { set_scale; disable_stamping; }
        default_action = set_scale(0);
        size = 1;
    }

    @hidden
    action saturate() {
        meta.hop_qd =
            (bit<16>)(meta.scaled_delay > SATURATED_16 ? SATURATED_16 : meta.scaled_delay);
    }

    apply {
        maxqd_scale.apply();
        saturate();
        if (hdr.maxqd.isValid() && hdr.maxqd.echo == 0 && meta.stamping == 1 &&
            meta.hop_qd > hdr.maxqd.max_qd) {
            hdr.maxqd.max_qd = meta.hop_qd;
            // The sender's checksum no longer holds; 0 means none (RFC 768).
            hdr.udp.checksum = 0;
        }
    }
}

#endif
