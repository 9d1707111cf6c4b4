// SPDX-License-Identifier: Apache-2.0
//
// An ingress-managed MMU in the pipeline. ChoosePool puts every arriving packet into a pool (DSH,
// Algorithm 1). LeavePool takes it out when it leaves its egress queue. Both may pause or resume
// the peer of the ingress port. The Go package headroom makes the same decisions (MMU with LocalResume).
//
// ChoosePool and LeavePool are one action each, because BMv2 locks the registers of an action while
// it runs: each decision reads and leaves consistent pools. The packet's metadata carries the
// policy to egress, so a packet leaves under the policy that admitted it.

#ifndef HEADGATE_V1MODEL_BUFFER_P4
#define HEADGATE_V1MODEL_BUFFER_P4

#define HAS(flag) (meta.buffer.flags & (flag) != 0)

// T of Eq. 2 by shifts, or the fixed threshold.
#define BUFFER_THRESHOLD(free) \
    (HAS(BUFFER_DYNAMIC) ? (((bit<48>)(free)) << meta.buffer.alpha_up) >> meta.buffer.alpha_down \
                         : (bit<48>)meta.buffer.threshold)

// The free bytes of the shared pool. After a change of the policy, private queues, headroom or
// insurance may hold more than the new policy reserves; the excess counts as used.
#define POOL_FREE(pool, used, private, headroom, insured) \
    ((pool) |-| (used) |-| ((private) |-| meta.target.private_pool) \
     |-| ((headroom) |-| meta.target.headroom_pool) |-| ((insured) |-| meta.target.insurance_pool))

// The free bytes of the whole buffer. This bound matters only after a change of the policy,
// while the shared pool or a queue's reserve holds more than the new policy allows.
#define BUFFER_ROOM(used, private, headroom, insured) \
    ((meta.buffer.shared + meta.target.private_pool + meta.target.headroom_pool + meta.target.insurance_pool) \
     |-| ((used) + (private) + (headroom) + (insured)))

// The classes that the peer of a port has been asked to pause, one bit each. Bit 8 of paused is the port.
#define PAUSED_CLASSES(paused) ((paused)[8:8] == 1 ? 8w0xff : (paused)[7:0])

// Reads the inputs of Algorithms 3 and 4. Only ingress uses their registers, so reading them
// here and writing them in StoreSample is safe.
control SampleQueue(inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action sample() {
        bit<32> port = (bit<32>)meta.arrival.port;
        bit<32> index = QUEUE_INDEX(port, meta.bridged.traffic_class);
        bit<32> private;
        bit<32> shared;
        bit<32> headroom;
        buffer_private.read(private, index);
        buffer_shared.read(shared, index);
        buffer_headroom.read(headroom, index);
        bit<32> length = private + shared + headroom + meta.bridged.frame_bytes;
        meta.estimate.length = length;

        bit<32> before;
        bit<49> seen;
        estimate_length.read(before, index);
        estimate_time.read(seen, index);
        meta.estimate.started = seen[48:48];
        meta.estimate.shrinks = (length < before) ? 1w1 : 1w0;
        meta.estimate.growth = (length < before) ? before - length : length - before;
        bit<48> elapsed = standard.ingress_global_timestamp |-| seen[47:0];
        meta.estimate.elapsed = (elapsed > (bit<48>)UNLIMITED) ? UNLIMITED : (bit<32>)elapsed;
        estimate_average.read(meta.estimate.average, index);
        estimate_deviation.read(meta.estimate.deviation, index);

        bit<52> window;
        window_start.read(window, port);
        meta.estimate.same_class =
            (window[51:48] == 1w1 ++ meta.bridged.traffic_class) ? 1w1 : 1w0;
        meta.estimate.single =
            (window[51:48] == 1w1 ++ meta.bridged.traffic_class &&
             standard.ingress_global_timestamp |-| window[47:0] > (bit<48>)meta.buffer.window) ? 1w1 : 1w0;
    }

    apply {
        sample();
    }
}

control StoreSample(in metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action store() {
        bit<32> index = QUEUE_INDEX(meta.arrival.port, meta.bridged.traffic_class);
        estimate_length.write(index, meta.estimate.length);
        estimate_time.write(index, 1w1 ++ standard.ingress_global_timestamp);
        estimate_average.write(index, meta.estimate.average);
        estimate_deviation.write(index, meta.estimate.deviation);
    }

    // Algorithm 4: a packet of another class restarts the window.
    @hidden
    action start_window() {
        window_start.write((bit<32>)meta.arrival.port,
                           1w1 ++ meta.bridged.traffic_class ++ standard.ingress_global_timestamp);
    }

    apply {
        store();
        if (meta.estimate.same_class == 0) {
            start_window();
        }
    }
}

// Chooses the packet's pool, or none, and the classes to pause.
control ChoosePool(inout metadata_t meta, in standard_metadata_t standard) {
    @hidden
    action choose_pool() {
        bit<32> n = meta.bridged.frame_bytes;
        bit<32> port = (bit<32>)meta.arrival.port;
        bit<32> index = QUEUE_INDEX(port, meta.bridged.traffic_class);
        bool lossless = meta.buffer.lossless == 1;

        bit<32> private;
        bit<32> shared;
        bit<32> counted;
        bit<32> headroom;
        bit<32> tau;
        bit<32> port_shared;
        bit<32> insured;
        bit<9>  paused;
        bit<48> paused_at;
        bit<32> used;
        bit<32> total_private;
        bit<32> total_headroom;
        bit<32> total_insured;
        bit<32> lent;
        bit<64> loan;
        buffer_private.read(private, index);
        buffer_shared.read(shared, index);
        buffer_counted.read(counted, index);
        buffer_headroom.read(headroom, index);
        buffer_tau.read(tau, index);
        buffer_loan.read(loan, index);
        buffer_port_shared.read(port_shared, port);
        buffer_insured.read(insured, port);
        buffer_paused.read(paused, port);
        buffer_paused_at.read(paused_at, port);
        buffer_pools.read(used, POOL_SHARED);
        buffer_pools.read(total_private, POOL_PRIVATE);
        buffer_pools.read(total_headroom, POOL_HEADROOM);
        buffer_pools.read(total_insured, POOL_INSURANCE);
        buffer_pools.read(lent, POOL_LENT);

        // Algorithm 1.
        bool as_victim = lossless && meta.buffer.victim == 1 && paused == 0;
        bool by_port = lossless && HAS(BUFFER_INSURED) && !HAS(BUFFER_BY_QUEUE);
        meta.target.free = POOL_FREE(meta.buffer.shared, used, total_private, total_headroom, total_insured);
        meta.target.victim_free = as_victim ? POOL_FREE(meta.buffer.shared + lent, used, total_private, total_headroom, total_insured) : 0;
        meta.target.room = BUFFER_ROOM(used, total_private, total_headroom, total_insured);
        bit<48> queue_limit = BUFFER_THRESHOLD(meta.target.free);
        bit<48> port_limit = queue_limit * (bit<48>)meta.buffer.port_queues;
        bit<48> level = (bit<48>)(by_port ? port_shared : shared) + (bit<48>)n;
        bit<32> reserved = (HAS(BUFFER_INSURED) ? insured : headroom) + n;
        // The pool is in metadata, because p4c would evaluate a local variable's expression again
        // at each use.
        meta.buffer.pool = (lossless && reserved <= meta.buffer.headroom)
            ? (HAS(BUFFER_INSURED) ? POOL_INSURANCE : POOL_HEADROOM) : POOL_NONE;
        meta.buffer.pool = (n <= meta.target.victim_free || (n <= meta.target.free && level < (by_port ? port_limit : queue_limit)))
            ? POOL_SHARED : meta.buffer.pool;
        meta.buffer.pool = (private + n <= meta.buffer.reserve) ? POOL_PRIVATE : meta.buffer.pool;
        meta.buffer.pool = (n <= meta.target.room) ? meta.buffer.pool : POOL_NONE;

        bit<32> more_shared = (meta.buffer.pool == POOL_SHARED || meta.buffer.pool == POOL_INSURANCE) ? n : 0;
        bit<32> more_counted = lossless ? more_shared : 0;
        private = private + (meta.buffer.pool == POOL_PRIVATE ? n : 0);
        shared = shared + more_shared;
        counted = counted + more_counted;
        headroom = headroom + (meta.buffer.pool == POOL_HEADROOM ? n : 0);
        port_shared = port_shared + more_counted;
        insured = insured + (meta.buffer.pool == POOL_INSURANCE ? n : 0);
        meta.target.free = meta.target.free |-| (meta.buffer.pool == POOL_SHARED ? n : 0);
        tau = (lossless && meta.buffer.pool != POOL_NONE)
            ? ((meta.estimate.single == 1) ? 0 : meta.estimate.phi) : tau;
        buffer_private.write(index, private);
        buffer_shared.write(index, shared);
        buffer_counted.write(index, counted);
        buffer_headroom.write(index, headroom);
        buffer_tau.write(index, tau);
        buffer_port_shared.write(port, port_shared);
        buffer_insured.write(port, insured);

        bit<32> total;
        bit<32> peak;
        buffer_pools.read(total, meta.buffer.pool);
        buffer_pools.read(peak, meta.buffer.pool + POOL_PEAKS);
        total = total + n;
        buffer_pools.write(meta.buffer.pool, total);
        buffer_pools.write(meta.buffer.pool + POOL_PEAKS, (total > peak) ? total : peak);

        // Fig. 3, §IV-E. An empty queue is never paused, because only a departure resumes it.
        bit<8> classes_before = PAUSED_CLASSES(paused);
        queue_limit = BUFFER_THRESHOLD(meta.target.free);
        port_limit = as_victim ? (bit<48>)meta.buffer.shared : queue_limit * (bit<48>)meta.buffer.port_queues;
        queue_limit = as_victim ? (bit<48>)(meta.buffer.shared + lent) : queue_limit;
        bool stop_queue = lossless && private + shared + headroom != 0 &&
            (meta.buffer.pool == POOL_NONE || meta.buffer.pool == POOL_HEADROOM ||
             (bit<48>)shared + (bit<48>)tau > queue_limit);
        bool stop_port = lossless && HAS(BUFFER_INSURED) && port_shared != 0 &&
            (meta.buffer.pool == POOL_NONE || meta.buffer.pool == POOL_INSURANCE ||
             (bit<48>)port_shared > port_limit);
        paused = paused | (stop_queue ? (bit<9>)meta.buffer.class_mask : 0) | (stop_port ? 9w0x100 : 0);
        buffer_paused.write(port, paused);

        // A queue that hears from its peer lends nothing.
        bool heard = paused[7:0] & meta.buffer.class_mask != 0;
        buffer_pools.write(POOL_LENT, lent - (heard ? loan[31:0] : 0));
        buffer_loan.write(index, heard ? standard.ingress_global_timestamp[31:0] ++ 32w0 : loan);

        bit<8> classes_after = PAUSED_CLASSES(paused);
        bit<8> stopped = classes_after & ~classes_before;
        // A packet that arrives although its class is paused shows that the peer does not know
        // of the PAUSE: the frame was lost, or the peer restarted.
        bit<48> age = standard.ingress_global_timestamp |-| paused_at;
        bool unknown = lossless && classes_before & meta.buffer.class_mask != 0 && age >= (bit<48>)meta.target.response;
        bool refresh = stopped == 0 && classes_before != 0 && meta.buffer.refresh != 0 &&
            (unknown || age >= (bit<48>)meta.buffer.refresh);
        // A PAUSE of further classes does not delay the refresh of the classes paused earlier.
        bool covers = stopped != 0 && (classes_before == 0 || paused[8:8] == 1);
        buffer_paused_at.write(port, (covers || refresh) ? standard.ingress_global_timestamp : paused_at);
        meta.signal.classes = (paused[8:8] == 1) ? 8w0xff : (refresh ? classes_before : stopped);
        meta.signal.kind = (stopped != 0) ? SIGNAL_PAUSE : (refresh ? SIGNAL_REFRESH : SIGNAL_NONE);
    }

    apply {
        choose_pool();
    }
}

// Drops a packet for which no pool has room, and subtracts it from its egress queue's account.
control UndoAdmission(inout metadata_t meta) {
    @hidden
    action undo() {
        bit<32> used;
        bit<32> index = QUEUE_INDEX(meta.egress_port, meta.bridged.queue);
        queue_bytes.read(used, index);
        queue_bytes.write(index, used |-| meta.bridged.frame_bytes);
        meta.drop_reason = DROP_BUFFER;
    }

    apply {
        undo();
    }
}

// Drops of lossless packets; index port << 3 | class.
control CountLossless(in metadata_t meta) {
    @id(ID_COUNTER_LOSSLESS_DROPS)
    @name(".ingress.lossless_drops")
    counter(QUEUE_CELLS, CounterType.packets_and_bytes) lossless_drops;

    apply {
        lossless_drops.count(QUEUE_INDEX(meta.arrival.port, meta.bridged.traffic_class));
    }
}

// Takes a departing packet out of its pool, insurance or headroom first, and decides whether its
// ingress queue and ingress port may resume (headroom's LocalResume).
control LeavePool(inout metadata_t meta, in standard_metadata_t standard) {
    @id(ID_COUNTER_INGRESS_DEPARTURES)
    @name(".egress.ingress_departures")
    counter(PORT_CELLS, CounterType.packets_and_bytes) ingress_departures;

    @hidden
    action leave() {
        bit<32> n = meta.bridged.frame_bytes;
        bit<32> port = (bit<32>)meta.arrival.port;
        bit<32> index = QUEUE_INDEX(port, meta.bridged.traffic_class);

        bit<32> private;
        bit<32> shared;
        bit<32> counted;
        bit<32> headroom;
        bit<32> tau;
        bit<32> port_shared;
        bit<32> insured;
        bit<9>  paused;
        bit<48> paused_at;
        bit<32> used;
        bit<32> total_private;
        bit<32> total_headroom;
        bit<32> total_insured;
        bit<32> lent;
        bit<64> loan;
        buffer_private.read(private, index);
        buffer_shared.read(shared, index);
        buffer_counted.read(counted, index);
        buffer_headroom.read(headroom, index);
        buffer_tau.read(tau, index);
        buffer_loan.read(loan, index);
        buffer_port_shared.read(port_shared, port);
        buffer_insured.read(insured, port);
        buffer_paused.read(paused, port);
        buffer_paused_at.read(paused_at, port);
        buffer_pools.read(used, POOL_SHARED);
        buffer_pools.read(total_private, POOL_PRIVATE);
        buffer_pools.read(total_headroom, POOL_HEADROOM);
        buffer_pools.read(total_insured, POOL_INSURANCE);
        buffer_pools.read(lent, POOL_LENT);

        bit<32> of_headroom = (n < headroom) ? n : headroom;
        bit<32> rest = n - of_headroom;
        bit<32> of_shared = (rest < shared) ? rest : shared;
        rest = rest - of_shared;
        bit<32> of_private = (rest < private) ? rest : private;
        bit<32> of_counted = (of_shared < counted) ? of_shared : counted;
        bit<32> of_insured = (of_counted < insured) ? of_counted : insured;
        private = private - of_private;
        shared = shared - of_shared;
        counted = counted - of_counted;
        headroom = headroom - of_headroom;
        port_shared = port_shared |-| of_counted;
        insured = insured - of_insured;
        used = used |-| (of_shared - of_insured);
        buffer_private.write(index, private);
        buffer_shared.write(index, shared);
        buffer_counted.write(index, counted);
        buffer_headroom.write(index, headroom);
        buffer_port_shared.write(port, port_shared);
        buffer_insured.write(port, insured);
        total_private = total_private |-| of_private;
        total_headroom = total_headroom |-| of_headroom;
        total_insured = total_insured |-| of_insured;
        buffer_pools.write(POOL_SHARED, used);
        buffer_pools.write(POOL_PRIVATE, total_private);
        buffer_pools.write(POOL_HEADROOM, total_headroom);
        buffer_pools.write(POOL_INSURANCE, total_insured);

        bit<8> classes_before = PAUSED_CLASSES(paused);
        meta.target.free = POOL_FREE(meta.buffer.shared, used, total_private, total_headroom, total_insured);
        bit<48> queue_limit = BUFFER_THRESHOLD(meta.target.free);
        bit<48> port_limit = queue_limit * (bit<48>)meta.buffer.port_queues;
        bool start_queue = paused[7:0] & meta.buffer.class_mask != 0 &&
            (private + shared + headroom == 0 ||
             (headroom == 0 &&
              (bit<48>)shared + (bit<48>)tau + (bit<48>)meta.buffer.resume_gap < queue_limit));
        bool start_port = paused[8:8] == 1 && insured == 0 &&
            (meta.buffer.lossless == 1 || of_counted != 0) &&
            (port_shared == 0 ||
             (bit<48>)port_shared + (bit<48>)meta.buffer.port_resume_gap < port_limit);
        meta.target.was_paused = (paused == 0) ? 1w0 : 1w1;
        paused = paused & ~(start_queue ? (bit<9>)meta.buffer.class_mask : 0) & (start_port ? 9w0xff : 9w0x1ff);
        meta.target.is_paused = (paused == 0) ? 1w0 : 1w1;
        buffer_paused.write(port, paused);

        // A paused queue whose peer is silent needs no headroom until RESUME. It lends as much of it as it holds of
        // the shared pool (Go type headroom.loan). Times are the lower 32 bits of the clock.
        bool silent = HAS(BUFFER_VICTIMS) && !HAS(BUFFER_INSURED) && paused[7:0] & meta.buffer.class_mask != 0 &&
            standard.egress_global_timestamp[31:0] - loan[63:32] > meta.target.response;
        bit<32> unused = meta.buffer.headroom |-| headroom;
        bit<32> lends = silent ? ((unused < shared) ? unused : shared) : 0;
        buffer_pools.write(POOL_LENT, lent - loan[31:0] + lends);
        buffer_loan.write(index, loan[63:32] ++ lends);

        bit<8> classes_after = PAUSED_CLASSES(paused);
        bit<8> started = classes_before & ~classes_after;
        bool refresh = started == 0 && classes_before != 0 && meta.buffer.refresh != 0 &&
            standard.egress_global_timestamp |-| paused_at >= (bit<48>)meta.buffer.refresh;
        buffer_paused_at.write(port, refresh ? standard.egress_global_timestamp : paused_at);
        meta.signal.classes = refresh ? classes_before : started;
        meta.signal.kind = (started != 0) ? SIGNAL_RESUME : (refresh ? SIGNAL_REFRESH : SIGNAL_NONE);
    }

    @hidden
    action send() {
        clone_preserving_field_list(CloneType.E2E,
            PFC_CLONE_SESSION + (bit<32>)meta.arrival.port, SIGNAL_LIST);
    }

    apply {
        leave();
        if (meta.buffer.lossless == 1) {
            ingress_departures.count((bit<32>)meta.arrival.port);
        }
        if (meta.signal.kind != SIGNAL_NONE) {
            send();
        }
    }
}

#endif
