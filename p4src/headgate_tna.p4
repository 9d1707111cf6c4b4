// SPDX-License-Identifier: Apache-2.0
//
// Headgate's pipeline for the Tofino native architecture (Tofino 1 and 2): the order in which
// the features are applied, and nothing else.
//
//   frame ──► IngressParser: headers, IPv4's checksum
//                   │
//   ingress     PacketOut ─ Arrival ─ Validate ─ Classify ─ Punt ─ Routing ─ Pacc ─ Enqueue
//                   │                    │                   │        │               │  │
//                   └─ port, poll        └─ drop             └────────┴──► queue      │  └ digest
//                                                                          │          └ drop
//                   ┌──────────────────────────────────────────────────────┘
//   traffic manager: buffer pools, thresholds, PFC, queues
//                   │
//   egress      Departure ─ PaccCongestion ─ Ecn ─ CountMarks ─ MaxQd ─ PortStatistics ─┐
//                                                                                       │
//                   ┌───────────────────────────────────────────────────────────────────┘
//                 Poll ──► mirror copy to the CPU port
//                   │
//             EgressDeparser: IPv4's checksum ──► frame
//
// The features are those of the v1model main, in shared/; what they need of the chip stands
// in tna/. They stand side by side: what does not need another's result shares its stages, and
// a condition is around one stage's work, since Tofino 1 runs a branch of several stages
// before anything else.
//
// The buffer, its pools and thresholds and PFC are the traffic manager's, and so are the limits
// of queues: the v1model main's tables for them are not here. A packet's length is not known
// in ingress, so a frame that ends before its IPv4 packet does is forwarded.

#define HEADGATE_VERSION "1.1.0"
// The versions are those of headgate_v1model.p4.

#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

#include "tna/chip.p4"
#include "shared/ids.p4"
#include "shared/size.p4"
#include "shared/constants.p4"
#include "shared/headers.p4"
#include "tna/target.p4"
#include "shared/metadata.p4"
#include "shared/validate.p4"
#include "shared/packet_io.p4"
#include "shared/classify.p4"
#include "shared/punt.p4"
#include "tna/routing.p4"
#include "shared/pacc.p4"
#include "shared/ecn.p4"
#include "tna/scale.p4"
#include "shared/maxqd.p4"
#include "tna/parser.p4"
#include "tna/ports.p4"
#include "tna/departure.p4"
#include "tna/statistics.p4"

control ingress(inout headers_t hdr, inout metadata_t meta,
                in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t deparse,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Arrival() arrival;
    Validate() validate;
    PacketOut() controller;
    Classify() classify;
    Punt() punt;
    FlowHash() flow_hash;
    Routing() routing;
    Pacc() pacc;
    Enqueue() enqueue;

    // A drop is carried out in Enqueue, and the first reason stays: PacketOut's is of packets
    // that Validate has nothing to say of.
    apply {
        flow_hash.apply(hdr, meta);
        controller.apply(hdr, meta);
        arrival.apply(meta, intrinsic, from_parser);
        validate.apply(hdr, meta);
        classify.apply(hdr, meta);
        if (meta.decided == 0) {
            punt.apply(hdr, meta);
        }
        if (meta.decided == 0) {
            routing.apply(hdr, meta);
        }
        if (meta.drop_reason == DROP_NONE) {
            pacc.apply(hdr, meta);
        }
        enqueue.apply(hdr, meta, deparse, tm);
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t deparse,
               inout egress_intrinsic_metadata_for_output_port_t output) {
    Departure() departure;
    PaccCongestion() pacc_congestion;
    Ecn() ecn;
    CountMarks() count_marks;
    MaxQd() maxqd;
    PortStatistics() statistics;
    Poll() poll;

    apply {
        // A mirror copy is a poll's report, which is complete.
        if (meta.bridged.isValid()) {
            departure.apply(meta, intrinsic, from_parser);
            pacc_congestion.apply(hdr, meta);
            ecn.apply(hdr, meta);
            count_marks.apply(meta);
            maxqd.apply(hdr, meta);
            statistics.apply(hdr, meta, intrinsic);
            poll.apply(hdr, meta, from_parser, deparse);
        }
    }
}

Pipeline(IngressParser(), ingress(), IngressDeparser(),
         EgressParser(), egress(), EgressDeparser()) pipe;

@pkginfo(name = "headgate", version = HEADGATE_VERSION, organization = "Headgate")
Switch(pipe) main;
