// SPDX-License-Identifier: Apache-2.0
//
// Registers at top level, since ingress and egress share them: simple_switch has one set
// of registers for both. It locks all registers of an action while the action runs, and
// ignores @atomic, so a read-modify-write always stands within one action.

#ifndef HEADGATE_V1MODEL_REGISTERS_P4
#define HEADGATE_V1MODEL_REGISTERS_P4

// Bytes admitted to each queue that have not left it; index port << 3 | queue.
@id(ID_REGISTER_QUEUE_BYTES)
register<bit<32>>(QUEUE_CELLS) queue_bytes;

// Packets refused because their queue was at its limit; index egress port.
@id(ID_REGISTER_ADMISSION_DROPS)
register<bit<32>>(PORT_CELLS) admission_drops;

// What left through each port since the start, and how long the last one had waited, in
// maxQD units.
@id(ID_REGISTER_DEPARTED_BYTES)
register<bit<48>>(PORT_CELLS) departed_bytes;
@id(ID_REGISTER_DEPARTED_PACKETS)
register<bit<48>>(PORT_CELLS) departed_packets;
@id(ID_REGISTER_LAST_DELAY)
register<bit<16>>(PORT_CELLS) last_delay;

#endif
