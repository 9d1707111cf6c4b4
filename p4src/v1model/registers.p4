// SPDX-License-Identifier: Apache-2.0
//
// Registers at top level, because ingress and egress share them: simple_switch has one set
// of registers for both. It locks all registers of an action while the action runs, and
// ignores @atomic, so each read-modify-write is within one action.

#ifndef HEADGATE_V1MODEL_REGISTERS_P4
#define HEADGATE_V1MODEL_REGISTERS_P4

// Bytes admitted to each queue that have not left it; index port << 3 | queue.
@id(ID_REGISTER_QUEUE_BYTES)
register<bit<32>>(QUEUE_CELLS) queue_bytes;

// Packets dropped because their queue was at its limit; index egress port.
@id(ID_REGISTER_ADMISSION_DROPS)
register<bit<32>>(PORT_CELLS) admission_drops;

// Packets and bytes that left each port since the start, and the queueing delay of the last one
// in maxQD units.
@id(ID_REGISTER_DEPARTED_BYTES)
register<bit<48>>(PORT_CELLS) departed_bytes;
@id(ID_REGISTER_DEPARTED_PACKETS)
register<bit<48>>(PORT_CELLS) departed_packets;
@id(ID_REGISTER_LAST_DELAY)
register<bit<16>>(PORT_CELLS) last_delay;

// When the next frame of a port to the controller is due, in ticks; index ingress port.
@id(ID_REGISTER_PUNT_DUE)
register<bit<48>>(PORT_CELLS) punt_due;

// The buffer's pools: bytes of each ingress queue; index port << 3 | traffic class. shared
// includes insured bytes. counted is the part of shared that counts for the port: all bytes
// of lossless classes. tau is the number of bytes by which the queue pauses early.
@id(ID_REGISTER_BUFFER_PRIVATE)
register<bit<32>>(QUEUE_CELLS) buffer_private;
@id(ID_REGISTER_BUFFER_SHARED)
register<bit<32>>(QUEUE_CELLS) buffer_shared;
@id(ID_REGISTER_BUFFER_COUNTED)
register<bit<32>>(QUEUE_CELLS) buffer_counted;
@id(ID_REGISTER_BUFFER_HEADROOM)
register<bit<32>>(QUEUE_CELLS) buffer_headroom;
@id(ID_REGISTER_BUFFER_TAU)
register<bit<32>>(QUEUE_CELLS) buffer_tau;

// What a paused queue lends to SPFC's victims: in bits 63 to 32 the time of the last packet that paused the queue or
// found it paused, in bits 31 to 0 the bytes.
@id(ID_REGISTER_BUFFER_LOAN)
register<bit<64>>(QUEUE_CELLS) buffer_loan;

// The same per ingress port. paused has a bit per class, and bit 8 for the whole port.
// paused_at is the time of the last PAUSE that named all paused classes.
@id(ID_REGISTER_BUFFER_PORT_SHARED)
register<bit<32>>(PORT_CELLS) buffer_port_shared;
@id(ID_REGISTER_BUFFER_INSURED)
register<bit<32>>(PORT_CELLS) buffer_insured;
@id(ID_REGISTER_BUFFER_PAUSED)
register<bit<9>>(PORT_CELLS) buffer_paused;
@id(ID_REGISTER_BUFFER_PAUSED_AT)
register<bit<48>>(PORT_CELLS) buffer_paused_at;

// SPFC's meter per ingress port: the bytes that departed in the period (IRC), the period's end in
// ticks, and the port's state (SH).
@id(ID_REGISTER_SPFC_COUNT)
register<bit<32>>(PORT_CELLS) spfc_count;
@id(ID_REGISTER_SPFC_PERIOD_END)
register<bit<48>>(PORT_CELLS) spfc_period_end;
@id(ID_REGISTER_SPFC_VICTIM)
register<bit<1>>(PORT_CELLS) spfc_victim;

// The pools of the switch, their peaks, and the sum of loans; index POOL_*.
@id(ID_REGISTER_BUFFER_POOLS)
register<bit<32>>(POOL_PEAKS * 2 + 1) buffer_pools;

// Algorithm 3, by queue: its length, the time of its last packet (bit 48: there was one), g_avg
// and v_avg. Algorithm 4, by port: bit 51 if a window has begun, its class, and its start.
@id(ID_REGISTER_ESTIMATE_LENGTH)
register<bit<32>>(QUEUE_CELLS) estimate_length;
@id(ID_REGISTER_ESTIMATE_TIME)
register<bit<49>>(QUEUE_CELLS) estimate_time;
@id(ID_REGISTER_ESTIMATE_AVERAGE)
register<bit<32>>(QUEUE_CELLS) estimate_average;
@id(ID_REGISTER_ESTIMATE_DEVIATION)
register<bit<32>>(QUEUE_CELLS) estimate_deviation;
@id(ID_REGISTER_WINDOW_START)
register<bit<52>>(PORT_CELLS) window_start;

#endif
