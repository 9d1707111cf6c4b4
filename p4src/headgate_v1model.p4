// SPDX-License-Identifier: Apache-2.0
//
// Headgate's pipeline for v1model (BMv2's simple_switch and the embedded switch): the
// order in which the features are applied, and nothing else.
//
//   frame ──► SwitchParser ──► VerifyChecksums
//                                   │
//   ingress     Arrival ─ Validate ─ PacketOut ─ Classify ─ Gateway ─ Punt ─ Routing ─ Admission ─ Admit ─┐
//                            │           │                     │       │        │                     │   │
//                            └─ drop     └─ port, poll ────────┴───────┴────────┴──► queue            └─  │
//                                                                                                    drop │
//                                                                          Memory ─ Pacc ─ Learn ─ Enqueue
//                                                                             │                           │
//                                PAUSE: clone to the ingress port ◄───────────┴─ drop                     ▼
//                                                                                 queues of the egress port
//                                                                                                         │
//   egress      Departure ─ Release ─ LeavePool ─┬─ Ecn ─ CountMarks ─ MaxQd ─ MaxQdTcp ─ PortStatistics ─┤
//                                      │         ├─ Poll ──► clone to the CPU port                        │
//                                      │         └─ Refresh ─┐                                            │
//     RESUME: clone to the ingress port ◄                    ▼                                            │
//   egress of a clone                                     SendPfc ────────────────────────────────────────┤
//                                                                                                         ▼
//                                                              UpdateChecksums ──► SwitchDeparser ──► frame
//
// A feature's IPv6 part follows it in the apply blocks.
// A feature is a control in shared/ that uses only headers_t and metadata_t. Its use of the
// target (registers, clones, random numbers), and anything that Tofino does in hardware, is in
// v1model/. A new feature adds its file, its ids and sizes, one include and one line below.
// A drop sets a reason in the metadata. Later features are then skipped, and Enqueue counts it.
// The switch needs 8 priority queues (--priority-queues 8) and CPU port 510.

#define HEADGATE_VERSION "1.7.0"
// 1.0.0  forwarding, classes, ECN, maxQD, packet I/O, polls.
// 1.1.0  PACC's flow table; the buffer: PFC, SIH, DSH, SPFC.
// 1.2.0  Pools count bytes admitted under an older policy; SPFC's port states in the pipeline; a
//        rate limit of each port's frames to the controller; a check of sources at edge ports.
// 1.3.0  Queue pairs of sources are learned from acknowledgements; packets without a shim on the
//        shim's UDP port pass.
// 1.4.0  IPv6 in all features of IPv4; the gateway, which answers ARP, neighbour solicitations and pings.
// 1.5.0  Each switch has a seed for the hash that chooses next hops, which may look at queue pairs.
// 1.6.0  maxQD in an option of TCP too.
// 1.7.0  A paused queue lends headroom to victims of SPFC.

#include <core.p4>
#include <v1model.p4>

#include "shared/ids.p4"
#include "shared/size.p4"
#include "shared/constants.p4"
#include "shared/headers.p4"
#include "v1model/target.p4"
#include "shared/metadata.p4"
#include "v1model/registers.p4"
#include "shared/validate.p4"
#include "shared/packet_io.p4"
#include "shared/classify.p4"
#include "shared/punt.p4"
#include "v1model/foreign.p4"
#include "v1model/punt_limit.p4"
#include "shared/source_check.p4"
#include "v1model/gateway.p4"
#include "v1model/routing.p4"
#include "v1model/admission.p4"
#include "shared/pacc.p4"
#include "shared/pacc_ipv6.p4"
#include "shared/ecn.p4"
#include "v1model/scale.p4"
#include "shared/maxqd.p4"
#include "v1model/maxqd_tcp.p4"
#include "v1model/policy.p4"
#include "v1model/estimate.p4"
#include "v1model/gradient.p4"
#include "v1model/pfc.p4"
#include "v1model/parser.p4"
#include "v1model/ports.p4"
#include "v1model/accounting.p4"
#include "v1model/buffer.p4"
#include "v1model/spfc.p4"
#include "v1model/pause.p4"
#include "v1model/memory.p4"
#include "v1model/learn.p4"
#include "v1model/queue_pair.p4"
#include "v1model/statistics.p4"

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard) {
    Arrival() arrival;
    Foreign() foreign;
    Validate() validate;
    ClearShimDrop() clear_shim_drop;
    PacketOut() controller;
    SourceCheck() source_check;
    SourceCheckIpv6() source_check_ipv6;
    Gateway() gateway;
    Classify() classify;
    Punt() punt;
    PuntLimit() punt_limit;
    Routing() routing;
    Admission() admission;
    Admit() admit;
    Memory() memory;
    Pacc() pacc;
    PaccCongestion() pacc_congestion;
    PaccIpv6() pacc_ipv6;
    PaccCongestionIpv6() pacc_congestion_ipv6;
    Learn() learn;
    LearnQueuePair() learn_queue_pair;
    Enqueue() enqueue;

    apply {
        arrival.apply(hdr, meta, standard);
        foreign.apply(hdr, meta);
        validate.apply(hdr, meta);
        clear_shim_drop.apply(hdr, meta);
        if (meta.drop_reason == DROP_NONE) {
            controller.apply(hdr, meta);
        }
        if (meta.drop_reason == DROP_NONE && meta.arrival.port != CPU_PORT) {
            source_check.apply(hdr, meta);
            source_check_ipv6.apply(hdr, meta);
        }
        if (meta.drop_reason == DROP_NONE && meta.decided == 0) {
            classify.apply(hdr, meta);
            if ((hdr.arp.isValid() || hdr.icmp.isValid()) && meta.arrival.port != CPU_PORT) {
                gateway.apply(hdr, meta);
            }
        }
        if (meta.drop_reason == DROP_NONE && meta.decided == 0) {
            punt.apply(hdr, meta);
            if (meta.decided == 1 && meta.arrival.port != CPU_PORT) {
                punt_limit.apply(meta, standard);
            }
        }
        if (meta.drop_reason == DROP_NONE && meta.decided == 0) {
            routing.apply(hdr, meta);
        }
        if (meta.drop_reason == DROP_NONE) {
            admission.apply(meta);
            admit.apply(meta);
            memory.apply(meta, standard);
        }
        if (meta.drop_reason == DROP_NONE) {
            pacc.apply(hdr, meta);
            pacc_congestion.apply(hdr, meta);
            pacc_ipv6.apply(hdr, meta);
            pacc_congestion_ipv6.apply(hdr, meta);
            learn.apply(hdr, meta);
            learn_queue_pair.apply(hdr, meta);
        }
        enqueue.apply(meta, standard);
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard) {
    Departure() departure;
    SendPfc() send_pfc;
    LeavePool() leave_pool;
    PortMeter() port_meter;
    Refresh() refresh;
    Release() release;
    Poll() poll;
    Ecn() ecn;
    EcnIpv6() ecn_ipv6;
    CountMarks() count_marks;
    MaxQd() maxqd;
    MaxQdTcp() maxqd_tcp;
    PortStatistics() statistics;

    apply {
        // A clone has no admission to undo. It is a poll's report, which is complete, or becomes
        // a PFC frame.
        bool copy = standard.instance_type == INSTANCE_INGRESS_CLONE ||
                    standard.instance_type == INSTANCE_EGRESS_CLONE;
        if (!copy) {
            departure.apply(meta, standard);
            release.apply(meta);
            if (meta.bridged.accounted == 1) {
                leave_pool.apply(meta, standard);
                if (meta.buffer.lossless == 1 && HAS(BUFFER_VICTIMS)) {
                    port_meter.apply(meta, standard);
                }
            }
            if (meta.bridged.poll == 1) {
                poll.apply(hdr, meta, standard);
            } else if (meta.bridged.refresh == 1 || meta.bridged.forget == 1) {
                refresh.apply(meta, standard);
            } else {
                // Packets to the controller are neither marked nor stamped.
                if (meta.departure.port != CPU_PORT) {
                    ecn.apply(hdr, meta);
                    ecn_ipv6.apply(hdr, meta);
                    count_marks.apply(meta);
                    maxqd.apply(hdr, meta);
                    maxqd_tcp.apply(hdr, meta);
                }
                statistics.apply(meta);
            }
        }
        if (meta.signal.kind != SIGNAL_NONE &&
            (copy || meta.bridged.refresh == 1 || meta.bridged.forget == 1)) {
            send_pfc.apply(hdr, meta, standard);
        }
    }
}

@pkginfo(name = "headgate", version = HEADGATE_VERSION, organization = "Headgate")
V1Switch(SwitchParser(), VerifyChecksums(), ingress(), egress(), UpdateChecksums(),
         SwitchDeparser()) main;
