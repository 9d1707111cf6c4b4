// SPDX-License-Identifier: Apache-2.0
//
// Every size of the pipeline, with its reason. The generator (p4src/internal/gen) copies
// these constants into the Go package p4src/ids.

#ifndef HEADGATE_SIZE_P4
#define HEADGATE_SIZE_P4

// Port numbers are 9 bits on v1model and on Tofino, and BMv2 does not check register
// bounds in release builds: one cell for each number that can appear.
const bit<32> PORT_CELLS = 512;

// IEEE 802.1Q has eight priorities, and a port has one queue for each.
const bit<32> QUEUES_PER_PORT = 8;

// One cell per (port, queue). The index is port << 3 | queue.
const bit<32> QUEUE_CELLS = PORT_CELLS * QUEUES_PER_PORT;

// One counter per drop reason (constants.p4), with room for the features to come.
const bit<32> DROP_REASON_CELLS = 32;

// Every value that the 6-bit DSCP can take (RFC 2474).
const bit<32> DSCP_ENTRIES = 64;

// A leaf of a three-tier fabric with k = 64 pods needs about 2000 rack prefixes; the
// tests reconcile 10 000 routes.
const bit<32> ROUTE_ENTRIES = 16384;

// Next hops of all ECMP groups together. On BMv2 a weight of w costs w of a group's
// MAX_GROUP_MEMBERS, since PI expresses weights by repeating the member.
const bit<32> ECMP_MEMBERS = 2048;

// Reason: at most 64 uplinks of equal weight, or 8 uplinks with weights up to 8. This is
// a #define because an annotation needs it.
#define MAX_GROUP_MEMBERS 64

// Bits of the hash that choose a member: enough that 64 members share evenly to 0.1 %.
const bit<32> ECMP_HASH_BITS = 32;

// ARP, LLDP, the switch's own addresses, and a few protocols for the controller. TCAM on
// a chip, a linear scan on BMv2: keep it small.
const bit<32> PUNT_ENTRIES = 64;

// A limit for every queue of every port.
const bit<32> QUEUE_LIMIT_ENTRIES = QUEUE_CELLS;

// Eight queues with at most 64 steps of the RED curve each (package tables/red).
const bit<32> RED_ENTRIES = QUEUES_PER_PORT * 64;

// One entry for each queue that PACC watches.
const bit<32> WATCHED_QUEUE_ENTRIES = PORT_CELLS;

// Pairs of addresses that pass through watched queues within the ageing time: 16 ports of
// 1000 pairs each, or 1024 senders to each of 16 hosts. At the paper's 21 bytes an entry
// this is 344 KB.
const bit<32> FLOW_ENTRIES = 16384;

// Queue depths are matched in cells of 64 bytes (a shift by 6): 16 bits of cells reach
// 4 MiB, which is more than one queue gets of any buffer in the papers but DT's tail;
// deeper queues count as 65535 cells.
const bit<8> DEPTH_CELL_SHIFT = 6;

// Entries of a logarithm table over 32 bits with up to 9 bits of precision, and of the
// exponential one: package tables/log2, whose default takes 1727 and 2048.
const bit<32> LOG_ENTRIES = 16384;
const bit<32> EXP_ENTRIES = 16384;

// Gradient thresholds: 64 kinds of links with package tables/phi's default of 64 each.
const bit<32> PHI_ENTRIES = 4096;

#endif
