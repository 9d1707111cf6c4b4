// SPDX-License-Identifier: Apache-2.0
//
// P4Runtime ids, fixed here so that they survive changes of the program. An id that was
// once in use is never given to something else. The high byte is the kind (P4Ids.Prefix
// of p4info.proto), the next one the feature:
//   00 packet I/O and drops, 01 classify, 02 routing, 03 punt, 04 admission, 05 ECN,
//   06 maxQD, 07 port statistics, 08 buffer and PFC, 09 PACC.
// Actions that only the program calls are @hidden: no P4Info, no id.
// Taken, though no program has them: 0x0108000a, 0x02080009, 0x16080016 to 0x1608001a.
// Ids of match fields and action parameters count from 1 in declaration order, which is
// what p4runtime-go-client assumes.

#ifndef HEADGATE_IDS_P4
#define HEADGATE_IDS_P4

#define ID_ACTION_SET_CLASS             0x01010001
#define ID_ACTION_SET_NEXT_HOP          0x01020001
#define ID_ACTION_HASH_FIVE_TUPLE       0x01020004
#define ID_ACTION_HASH_QUEUE_PAIR       0x01020005
#define ID_ACTION_PUNT_TO_CPU           0x01030001
#define ID_ACTION_SET_QUEUE_LIMIT       0x01040001
#define ID_ACTION_SET_MARK_PROBABILITY  0x01050001
#define ID_ACTION_SET_SCALE             0x01060001
#define ID_ACTION_DISABLE_STAMPING      0x01060002
#define ID_ACTION_SET_BUFFER_POLICY     0x01080001
#define ID_ACTION_DISABLE_BUFFER        0x01080002
#define ID_ACTION_SET_BUFFER_PORT       0x01080003
#define ID_ACTION_SET_VICTIM            0x01080004
#define ID_ACTION_SET_LOG_BYTES         0x01080005
#define ID_ACTION_SET_LOG_TICKS         0x01080006
#define ID_ACTION_SET_GRADIENT          0x01080007
#define ID_ACTION_SET_PHI               0x01080008
#define ID_ACTION_SET_PFC_PORT          0x01080009
#define ID_ACTION_WATCH                 0x01090001
#define ID_ACTION_COUNT_FLOW            0x01090002
#define ID_ACTION_LEARN_FLOW            0x01090003
#define ID_ACTION_COUNT_CONGESTED       0x01090004

#define ID_TABLE_DSCP_TO_CLASS          0x02010001
#define ID_TABLE_IPV4_LPM               0x02020001
#define ID_TABLE_ECMP_HASH              0x02020003
#define ID_TABLE_PUNT                   0x02030001
#define ID_TABLE_QUEUE_LIMIT            0x02040001
#define ID_TABLE_ECN_RED                0x02050001
#define ID_TABLE_MAXQD_SCALE            0x02060001
#define ID_TABLE_BUFFER_POLICY          0x02080001
#define ID_TABLE_BUFFER_PORT            0x02080002
#define ID_TABLE_VICTIM_PORT            0x02080003
#define ID_TABLE_LOG2_BYTES             0x02080004
#define ID_TABLE_LOG2_TICKS             0x02080005
#define ID_TABLE_EXP2                   0x02080006
#define ID_TABLE_HEADROOM_FOR           0x02080007
#define ID_TABLE_PFC_PORT               0x02080008
#define ID_TABLE_WATCHED_QUEUE          0x02090001
#define ID_TABLE_FLOW                   0x02090002
#define ID_TABLE_CONGESTED_FLOW         0x02090003

#define ID_HEADER_PACKET_IN             0x04000001
#define ID_HEADER_PACKET_OUT            0x04000002

#define ID_SELECTOR_ECMP                0x11020001

#define ID_COUNTER_DROPS                0x12000001
#define ID_COUNTER_ECN_MARKS            0x12050001
#define ID_COUNTER_LOSSLESS_DROPS       0x12080001
#define ID_COUNTER_INGRESS_DEPARTURES   0x12080002
#define ID_COUNTER_PFC_PAUSES           0x12080003
#define ID_COUNTER_PFC_RESUMES          0x12080004
#define ID_COUNTER_PFC_REFRESHES        0x12080005

#define ID_DIRECT_COUNTER_FLOW          0x13090001
#define ID_DIRECT_COUNTER_CONGESTED     0x13090002

#define ID_REGISTER_QUEUE_BYTES         0x16040001
#define ID_REGISTER_ADMISSION_DROPS     0x16040002
#define ID_REGISTER_DEPARTED_BYTES      0x16070001
#define ID_REGISTER_DEPARTED_PACKETS    0x16070002
#define ID_REGISTER_LAST_DELAY          0x16070003
// Tofino's alone: 48 bits are two registers there, and each queue has its own.
#define ID_REGISTER_DEPARTED_BYTES_LOW  0x16070004
#define ID_REGISTER_DEPARTED_BYTES_HIGH 0x16070005
#define ID_REGISTER_DEPARTED_PACKETS_LOW 0x16070006
#define ID_REGISTER_DEPARTED_PACKETS_HIGH 0x16070007
#define ID_REGISTER_DEPTH_0             0x16070010
#define ID_REGISTER_DEPTH_1             0x16070011
#define ID_REGISTER_DEPTH_2             0x16070012
#define ID_REGISTER_DEPTH_3             0x16070013
#define ID_REGISTER_DEPTH_4             0x16070014
#define ID_REGISTER_DEPTH_5             0x16070015
#define ID_REGISTER_DEPTH_6             0x16070016
#define ID_REGISTER_DEPTH_7             0x16070017
#define ID_REGISTER_BUFFER_PRIVATE      0x16080001
#define ID_REGISTER_BUFFER_SHARED       0x16080002
#define ID_REGISTER_BUFFER_COUNTED      0x16080003
#define ID_REGISTER_BUFFER_HEADROOM     0x16080004
#define ID_REGISTER_BUFFER_TAU          0x16080005
#define ID_REGISTER_BUFFER_PORT_SHARED  0x16080006
#define ID_REGISTER_BUFFER_INSURED      0x16080007
#define ID_REGISTER_BUFFER_PAUSED       0x16080008
#define ID_REGISTER_BUFFER_PAUSED_AT    0x16080009
#define ID_REGISTER_BUFFER_POOLS        0x1608000a
#define ID_REGISTER_ESTIMATE_LENGTH     0x16080011
#define ID_REGISTER_ESTIMATE_TIME       0x16080012
#define ID_REGISTER_ESTIMATE_AVERAGE    0x16080013
#define ID_REGISTER_ESTIMATE_DEVIATION  0x16080014
#define ID_REGISTER_WINDOW_START        0x16080015

#endif
