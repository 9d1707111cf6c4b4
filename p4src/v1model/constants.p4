// SPDX-License-Identifier: Apache-2.0
//
// Numbers that switch and controller must agree on and that only v1model has. The generator
// copies them as it does those of shared/constants.p4.

#ifndef HEADGATE_V1MODEL_CONSTANTS_P4
#define HEADGATE_V1MODEL_CONSTANTS_P4

// Further values of drop_reason_t. Never renumber.
const drop_reason_t DROP_PUNT_LIMIT = 14;    // more for the controller than its port may send
const drop_reason_t DROP_SOURCE = 15;        // a source that the edge port does not have

// Two entries for each port, and as many again for ports with several addresses.
const bit<32> SOURCE_CHECK_ENTRIES = PORT_CELLS * 4;

// A queue pair for each pair of addresses that PACC's flow table holds.
const bit<32> QUEUE_PAIR_ENTRIES = FLOW_ENTRIES;

// What is the same in every transport header of ours (packet/bth.go), and the least length of
// UDP with a shim: both headers and the ICRC.
const bit<16> DEFAULT_PARTITION_KEY = 0xffff;
const bit<16> SHIM_DATAGRAM_BYTES = 28;

// Opcode of an acknowledgement of the reliable connection (IBTA volume 1, 9.2.1).
const bit<8> BTH_ACKNOWLEDGE = 17;

#endif
