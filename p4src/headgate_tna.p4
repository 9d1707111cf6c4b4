// SPDX-License-Identifier: Apache-2.0
//
// Headgate's pipeline for the Tofino native architecture (Tofino 1 and 2): the order in which
// the features are applied, and nothing else.
//
//   frame ──► IngressParser: headers, IPv4's checksum
//                   │
//   ingress     PacketOut ─ Arrival ─ Validate ─ SourceCheck ─ Classify ─ Gateway ─ Punt ─ Routing ─ Pacc ─ Enqueue
//                   │                    │            │                     │        │        │               │  │
//                   └─ port, poll        └────────────┴─ drop               └────────┴────────┴──► queue      │  └ digest
//                                                                                                    │        └ drop
//                   ┌────────────────────────────────────────────────────────────────────────────────┘
//   traffic manager: buffer pools, thresholds, PFC, queues
//                   │
//   egress      Departure ─ PaccCongestion ─ Ecn ─ CountMarks ─ MaxQd ─ MaxQdTcp ─ PortStatistics ─┐
//                                                                                                  │
//                   ┌──────────────────────────────────────────────────────────────────────────────┘
//                 Poll ──► mirror copy to the CPU port
//                   │
//             EgressDeparser: checksums of IPv4 and TCP ──► frame
//
// A feature's IPv6 part follows it in the apply blocks. FlowHash and NextHop run beside the controls in front
// of Routing. Only Tofino 2 has Gateway.
// The features are those of v1model's program, in shared/. The parts of them that depend on the chip are
// in tna/. Controls that need no result of each other share stages. A condition surrounds the work of
// only one stage, because Tofino 1 runs a branch of several stages before everything else.
//
// The traffic manager has the buffer with its pools, thresholds and PFC, and the limits of queues: v1model's
// tables for them are not here. Ingress does not know a packet's length, so a frame that ends before its
// IP packet is forwarded.

#define HEADGATE_VERSION "1.7.0"
// headgate_v1model.p4 lists the versions, and docs/targets/tofino.md the parts that this program lacks.

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
#include "shared/source_check.p4"
#include "shared/punt.p4"
#include "tna/routing.p4"
#include "shared/pacc.p4"
#include "shared/pacc_ipv6.p4"
#include "shared/ecn.p4"
#include "tna/scale.p4"
#include "shared/maxqd.p4"
#include "tna/maxqd_tcp.p4"
#include "tna/gateway.p4"
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
    SourceCheck() source_check;
    SourceCheckIpv6() source_check_ipv6;
    Classify() classify;
#ifdef PIPELINE_IS_GATEWAY
    Gateway() gateway;
#endif
    Punt() punt;
    FlowHash() flow_hash;
    NextHop() next_hop;
    Routing() routing;
    Pacc() pacc;
    PaccIpv6() pacc_ipv6;
    Enqueue() enqueue;

    // Enqueue drops packets. The first reason stays. PacketOut gives reasons only to packets that Validate
    // skips. The controller's port has no sources to check.
    apply {
        flow_hash.apply(hdr, meta);
        controller.apply(hdr, meta);
        arrival.apply(meta, intrinsic, from_parser);
        validate.apply(hdr, meta);
        source_check.apply(hdr, meta);
        source_check_ipv6.apply(hdr, meta);
        if (meta.drop_reason == DROP_NONE && meta.target.refused_source == 1) {
            meta.drop_reason = DROP_SOURCE;
        }
        classify.apply(hdr, meta);
#ifdef PIPELINE_IS_GATEWAY
        if (meta.decided == 0) {
            gateway.apply(hdr, meta);
        }
#endif
        punt.apply(hdr, meta);
        next_hop.apply(hdr, meta);
        if (meta.decided == 0) {
            routing.apply(hdr, meta);
        }
        if (meta.drop_reason == DROP_NONE) {
            pacc.apply(hdr, meta);
            pacc_ipv6.apply(hdr, meta);
        }
        enqueue.apply(hdr, meta, deparse, tm);
    }
}

#if __TARGET_TOFINO__ == 2
// Without these annotations, the compiler loses the first field, and the assembler the length of the second header.
@pa_container_type("egress", "meta.hop_qd", "normal")
@pa_no_overlay("egress", "meta.hop_qd")
@do_not_use_clot("egress", "hdr.ipv6")
#endif
control egress(inout headers_t hdr, inout metadata_t meta,
               in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t deparse,
               inout egress_intrinsic_metadata_for_output_port_t output) {
    Departure() departure;
    PaccCongestion() pacc_congestion;
    PaccCongestionIpv6() pacc_congestion_ipv6;
    RedDepth() red_depth;
    Ecn() ecn;
    EcnIpv6() ecn_ipv6;
    CountMarks() count_marks;
    MaxQd() maxqd;
    MaxQdTcp() maxqd_tcp;
    PortStatistics() statistics;
    Poll() poll;

    apply {
        // A mirror copy is a complete poll report.
        if (meta.bridged.isValid()) {
            departure.apply(meta, intrinsic, from_parser);
            pacc_congestion.apply(hdr, meta);
            pacc_congestion_ipv6.apply(hdr, meta);
            red_depth.apply(meta);
            ecn.apply(hdr, meta);
            ecn_ipv6.apply(hdr, meta);
            count_marks.apply(meta);
            maxqd.apply(hdr, meta);
            maxqd_tcp.apply(hdr, meta);
            statistics.apply(hdr, meta, intrinsic);
            poll.apply(hdr, meta, from_parser, deparse);
        }
    }
}

Pipeline(IngressParser(), ingress(), IngressDeparser(),
         EgressParser(), egress(), EgressDeparser()) pipe;

@pkginfo(name = "headgate", version = HEADGATE_VERSION, organization = "Headgate")
Switch(pipe) main;
