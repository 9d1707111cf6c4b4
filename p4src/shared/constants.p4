// SPDX-License-Identifier: Apache-2.0
//
// Numbers that switch and controller must agree on. The generator (p4src/internal/gen)
// copies them into the Go package p4src/ids.

#ifndef HEADGATE_CONSTANTS_P4
#define HEADGATE_CONSTANTS_P4

typedef bit<9>  port_id_t;
typedef bit<3>  queue_id_t;
typedef bit<3>  class_id_t;
typedef bit<8>  drop_reason_t;
typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;

// The controller's port. 510, since 511 is the port number that means drop on v1model. A
// chip has another, which its target.p4 defines before.
#ifndef CPU_PORT
const port_id_t CPU_PORT = 510;
#endif

// The clone session that the controller installs to send a poll report to the CPU port.
// Tofino 2 has eight bits for its number.
const bit<32> POLL_CLONE_SESSION = 254;

// Strict priority goes to the highest queue number; polls must not wait behind data.
const queue_id_t HIGHEST_QUEUE = 7;

// PFC frames leave port p by clone session PFC_CLONE_SESSION + p, which the controller
// installs, with the highest class of service that the target takes.
const bit<32> PFC_CLONE_SESSION = 1024;

// A queue that has no limit: no register can exceed it.
const bit<32> UNLIMITED = 0xffffffff;

// EtherTypes (IEEE 802 numbers) and IPv4 protocols (IANA).
const bit<16> ETHER_TYPE_IPV4 = 0x0800;
const bit<16> ETHER_TYPE_MAC_CONTROL = 0x8808;
const bit<8>  IP_PROTOCOL_TCP = 6;
const bit<8>  IP_PROTOCOL_UDP = 17;

// UDP destination ports: RoCEv2 (IBTA Annex A17) and the maxQD shim (dynamic range of
// RFC 6335).
const bit<16> UDP_PORT_ROCE = 4791;
const bit<16> UDP_PORT_MAXQD = 50151;

// MAC control opcode of priority-based flow control (IEEE 802.1Q clause 36).
const bit<16> MAC_CONTROL_PFC = 0x0101;

// Where MAC control frames go, and the least that Ethernet sends, without FCS.
const mac_t MAC_CONTROL_ADDRESS = 0x0180c2000001;
const bit<32> PFC_FRAME_BYTES = 60;

// The maxQD shim: its version, and which next header the switch knows. Anything else is
// opaque payload.
const bit<4> MAXQD_VERSION = 1;
const bit<8> MAXQD_NEXT_BTH = 1;

// The largest value of a 16-bit field that saturates: a queueing delay, a queue depth.
const bit<16> SATURATED_16 = 0xffff;

// Explicit congestion notification (RFC 3168).
const bit<2> ECT_1 = 1;
const bit<2> ECT_0 = 2;
const bit<2> CE = 3;

// The packet_out header's length on the CPU port.
const bit<32> PACKET_OUT_BYTES = 2;

// What a packet-out asks for.
const bit<4> PACKET_OUT_PORT = 0;     // leave by the given port and queue as it is
const bit<4> PACKET_OUT_PIPELINE = 1; // be processed like a frame that arrived
const bit<4> PACKET_OUT_POLL = 2;     // bring back the registers of the given port
const bit<4> PACKET_OUT_REFRESH = 3;  // repeat the PAUSE of all that the port has paused
const bit<4> PACKET_OUT_FORGET = 4;   // empty the accounts of an idle ingress port

// Flags of a buffer policy. BUFFER_ON is the program's own: there is a policy.
const bit<6> BUFFER_DYNAMIC = 1;   // T is α of what is free, not a fixed threshold
const bit<6> BUFFER_INSURED = 2;   // headroom is each port's insurance (DSH)
const bit<6> BUFFER_ESTIMATE = 4;  // queues pause early by what Algorithms 3 and 4 say
const bit<6> BUFFER_VICTIMS = 8;   // victim ports may take all of the shared pool (SPFC)
const bit<6> BUFFER_APART = 16;    // insured, but a queue is bound by its own threshold
const bit<6> BUFFER_ON = 32;

// Cells of register buffer_pools: the bytes in use, and POOL_PEAKS behind each its peak. A
// packet that is refused is in pool POOL_NONE.
const bit<32> POOL_PRIVATE = 0;
const bit<32> POOL_SHARED = 1;
const bit<32> POOL_HEADROOM = 2;
const bit<32> POOL_INSURANCE = 3;
const bit<32> POOL_NONE = 4;
const bit<32> POOL_PEAKS = 5;

// PFC frames, and the fields that a clone keeps to become one.
const bit<2> SIGNAL_NONE = 0;
const bit<2> SIGNAL_PAUSE = 1;
const bit<2> SIGNAL_RESUME = 2;
const bit<2> SIGNAL_REFRESH = 3; // a PAUSE again
const bit<8> SIGNAL_LIST = 1;

// 1 as a logarithm of DSH's tables.
const bit<32> LOG_ONE = 0x10000;

// Why a packet-in was sent: a poll's report. All other values are the punt entries' own.
const bit<4> PACKET_IN_POLL = 1;

// What stands between a poll's report and its payload.
const bit<7> REPORT_BUFFER = 0; // buffer_report_t
const bit<7> REPORT_ALONE = 1;  // nothing

// Why a packet was dropped: the index of counter ingress.drops. Never renumber.
const drop_reason_t DROP_NONE = 0;
const drop_reason_t DROP_PARSER = 1;         // the frame ends inside a header
const drop_reason_t DROP_IPV4_HEADER = 2;    // version, header length or total length
const drop_reason_t DROP_IPV4_OPTIONS = 3;   // IHL > 5: no fabric traffic has options
const drop_reason_t DROP_IPV4_CHECKSUM = 4;
const drop_reason_t DROP_MAC_CONTROL = 5;    // PAUSE and PFC end at the MAC
const drop_reason_t DROP_MAXQD_SHIM = 6;     // unknown version of the shim
const drop_reason_t DROP_NOT_IPV4 = 7;       // neither IPv4 nor punted
const drop_reason_t DROP_NO_ROUTE = 8;
const drop_reason_t DROP_TTL = 9;
const drop_reason_t DROP_ADMISSION = 10;     // the queue is at its limit
const drop_reason_t DROP_PACKET_OUT = 11;    // unknown mode of a packet-out
const drop_reason_t DROP_UDP_LENGTH = 12;    // beyond the packet, or too short for the shim
const drop_reason_t DROP_BUFFER = 13;        // no memory that the packet may take

#endif
