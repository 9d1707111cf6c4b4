// SPDX-License-Identifier: Apache-2.0
//
// Limits the frames per second that a port sends to the controller, by the generic cell rate
// algorithm (ITU-T I.371): a token bucket with one time per port. A register keeps that time. A
// meter would need its rate from elsewhere; here it is an action parameter.

#ifndef HEADGATE_V1MODEL_PUNT_LIMIT_P4
#define HEADGATE_V1MODEL_PUNT_LIMIT_P4

control PuntLimit(inout metadata_t meta, in standard_metadata_t standard) {
    // interval and burst are in ticks. An interval of 0 means no limit.
    @id(ID_ACTION_SET_PUNT_LIMIT)
    @name(".ingress.punt.set_punt_limit")
    action set_punt_limit(@id(1) bit<32> interval, @id(2) bit<32> tolerance) {
        bit<48> due; // the time of the next frame at the permitted rate
        bit<48> now = standard.ingress_global_timestamp;
        punt_due.read(due, (bit<32>)meta.arrival.port);
        // A due time too far ahead was written under an earlier, lower rate: restart from now.
        due = (due < now || due - now > (bit<48>)tolerance + (bit<48>)interval) ? now : due;
        meta.drop_reason = (due - now > (bit<48>)tolerance) ? DROP_PUNT_LIMIT : meta.drop_reason;
        punt_due.write((bit<32>)meta.arrival.port,
            (due - now > (bit<48>)tolerance) ? due : due + (bit<48>)interval);
    }

    @id(ID_TABLE_PUNT_LIMIT)
    @name(".ingress.punt.punt_limit")
    table punt_limit {
        actions = { set_punt_limit; }
        default_action = set_punt_limit(0, 0);
        size = 1;
    }

    apply {
        punt_limit.apply();
    }
}

#endif
