// SPDX-License-Identifier: Apache-2.0
//
// The sizes of the pipeline, each with its reason. The generator (p4src/internal/gen) copies them to
// the Go package p4src/ids. Sizes that each target chooses are in its target.p4.

#ifndef HEADGATE_SIZE_P4
#define HEADGATE_SIZE_P4

// One cell for each number that a port can have: 9 bits on v1model and on Tofino. BMv2 does not
// check the bounds of registers in release builds.
const bit<32> PORT_CELLS = 512;

// IEEE 802.1Q has eight priorities, and a port has one queue for each.
const bit<32> QUEUES_PER_PORT = 8;

// One cell per (port, queue). The index is port << 3 | queue.
const bit<32> QUEUE_CELLS = PORT_CELLS * QUEUES_PER_PORT;

// One counter per drop reason (constants.p4), with room for more reasons.
const bit<32> DROP_REASON_CELLS = 32;

// Every value that the 6-bit DSCP can take (RFC 2474).
const bit<32> DSCP_ENTRIES = 64;

// All 64 DSCPs for each of 64 ports with their own map.
const bit<32> PORT_DSCP_ENTRIES = 4096;

// A leaf of a three-tier fabric with k = 64 pods needs about 2000 rack prefixes. The tests
// reconcile 10 000 routes.
const bit<32> ROUTE_ENTRIES = 16384;

// Next hops of all ECMP groups together. On BMv2 a weight of w takes w of a group's
// MAX_GROUP_MEMBERS, because PI repeats the member.
const bit<32> ECMP_MEMBERS = 2048;

// 64 uplinks of equal weight, or 8 uplinks with weights up to 8. It is a #define because an
// annotation needs it.
#define MAX_GROUP_MEMBERS 64

// Bits of the hash that choose a member: 64 members share evenly to 0.1 %.
const bit<32> ECMP_HASH_BITS = 32;

// ARP, LLDP, the switch's own addresses, and a few protocols for the controller. A chip takes TCAM
// for it, and BMv2 scans it, so it is small.
const bit<32> PUNT_ENTRIES = 64;

// A limit for every queue of every port.
const bit<32> QUEUE_LIMIT_ENTRIES = QUEUE_CELLS;

// Entries of one RED curve, at most (package tables/red).
const bit<32> RED_CURVE_ENTRIES = 64;

// A chip matches queue depths in cells of 64 bytes: a shift by 6. A range has 20 bits there, so cells
// reach 64 MiB, which is as large as a chip's buffer. Deeper queues count as the most cells.
const bit<8> DEPTH_CELL_SHIFT = 6;

// One entry for each queue that PACC watches.
const bit<32> WATCHED_QUEUE_ENTRIES = PORT_CELLS;

// Pairs of addresses that pass through watched queues within the ageing time: 16 ports of
// 1000 pairs each, or 1024 senders to each of 16 hosts. At the paper's 21 bytes per entry
// this is 344 KB.
const bit<32> FLOW_ENTRIES = 16384;

// A queue pair for each pair of addresses that PACC's flow table holds.
const bit<32> QUEUE_PAIR_ENTRIES = FLOW_ENTRIES;

// Addresses that the gateway answers for, per IP version: its own, and prefixes as a proxy.
const bit<32> GATEWAY_ENTRIES = 1024;

// Entries of a logarithm table over 32 bits with up to 9 bits of precision, and of an exponential
// table (package tables/log2). Their defaults take 1727 and 2048.
const bit<32> LOG_ENTRIES = 16384;
const bit<32> EXP_ENTRIES = 16384;

// Gradient thresholds: 64 kinds of links with package tables/phi's default of 64 each.
const bit<32> PHI_ENTRIES = 4096;

#endif
