// SPDX-License-Identifier: Apache-2.0
//
// P4Runtime ids, fixed here so that they survive changes of the program. An id that was
// once in use is never given to something else. The high byte is the kind (P4Ids.Prefix
// of p4info.proto), the next one the feature:
//   00 packet I/O and drops, 01 classify, 02 routing, 03 punt, 04 admission, 05 ECN,
//   06 maxQD, 07 port statistics.
// Actions that only the program calls are @hidden: no P4Info, no id.
// Ids of match fields and action parameters count from 1 in declaration order, which is
// what p4runtime-go-client assumes.

#ifndef HEADGATE_IDS_P4
#define HEADGATE_IDS_P4

#define ID_ACTION_SET_CLASS             0x01010001
#define ID_ACTION_SET_NEXT_HOP          0x01020001
#define ID_ACTION_PUNT_TO_CPU           0x01030001
#define ID_ACTION_SET_QUEUE_LIMIT       0x01040001
#define ID_ACTION_SET_MARK_PROBABILITY  0x01050001
#define ID_ACTION_SET_SCALE             0x01060001
#define ID_ACTION_DISABLE_STAMPING      0x01060002

#define ID_TABLE_DSCP_TO_CLASS          0x02010001
#define ID_TABLE_IPV4_LPM               0x02020001
#define ID_TABLE_PUNT                   0x02030001
#define ID_TABLE_QUEUE_LIMIT            0x02040001
#define ID_TABLE_ECN_RED                0x02050001
#define ID_TABLE_MAXQD_SCALE            0x02060001

#define ID_HEADER_PACKET_IN             0x04000001
#define ID_HEADER_PACKET_OUT            0x04000002

#define ID_SELECTOR_ECMP                0x11020001

#define ID_COUNTER_DROPS                0x12000001
#define ID_COUNTER_ECN_MARKS            0x12050001

#define ID_REGISTER_QUEUE_BYTES         0x16040001
#define ID_REGISTER_ADMISSION_DROPS     0x16040002
#define ID_REGISTER_DEPARTED_BYTES      0x16070001
#define ID_REGISTER_DEPARTED_PACKETS    0x16070002
#define ID_REGISTER_LAST_DELAY          0x16070003

#endif
