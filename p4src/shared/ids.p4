// SPDX-License-Identifier: Apache-2.0
//
// P4Runtime ids. They are fixed here, so that they stay when the program changes. An id that was
// used once never gets another meaning. The high byte is the kind (P4Ids.Prefix of p4info.proto),
// the next byte is the feature:
//   00 packet I/O and drops, 01 classify, 02 routing, 03 punt, 04 admission, 05 ECN,
//   06 maxQD, 07 port statistics, 08 buffer and PFC, 09 PACC, 0a gateway.
// Actions that only the program calls are @hidden: they have no id, and P4Info has no entry for them.
// Used once, in no program now: 0x0108000a, 0x02080009, 0x16080016 to 0x1608001a.
// Ids of match fields and action parameters count from 1 in the order of declaration, because
// p4runtime-go-client assumes it.

#ifndef HEADGATE_IDS_P4
#define HEADGATE_IDS_P4

#define ID_ACTION_SET_CLASS                 0x01010001
#define ID_ACTION_SET_NEXT_HOP              0x01020001
#define ID_ACTION_PERMIT_SOURCE             0x01020002
#define ID_ACTION_REFUSE_SOURCE             0x01020003
#define ID_ACTION_HASH_FIVE_TUPLE           0x01020004
#define ID_ACTION_HASH_QUEUE_PAIR           0x01020005
#define ID_ACTION_HASH_FIVE_TUPLE_IPV6      0x01020006
#define ID_ACTION_HASH_QUEUE_PAIR_IPV6      0x01020007
#define ID_ACTION_HASH_FLOW_LABEL           0x01020008
#define ID_ACTION_PERMIT_SOURCE_IPV6        0x01020009
#define ID_ACTION_REFUSE_SOURCE_IPV6        0x0102000a
#define ID_ACTION_PUNT_TO_CPU               0x01030001
#define ID_ACTION_SET_PUNT_LIMIT            0x01030002
#define ID_ACTION_SET_QUEUE_LIMIT           0x01040001
#define ID_ACTION_SET_MARK_PROBABILITY      0x01050001
#define ID_ACTION_SET_CURVE                 0x01050002
#define ID_ACTION_SET_SCALE                 0x01060001
#define ID_ACTION_DISABLE_STAMPING          0x01060002
#define ID_ACTION_SET_BUFFER_POLICY         0x01080001
#define ID_ACTION_DISABLE_BUFFER            0x01080002
#define ID_ACTION_SET_BUFFER_PORT           0x01080003
#define ID_ACTION_SET_VICTIM                0x01080004
#define ID_ACTION_SET_LOG_BYTES             0x01080005
#define ID_ACTION_SET_LOG_TICKS             0x01080006
#define ID_ACTION_SET_GRADIENT              0x01080007
#define ID_ACTION_SET_PHI                   0x01080008
#define ID_ACTION_SET_PFC_PORT              0x01080009
#define ID_ACTION_WATCH                     0x01090001
#define ID_ACTION_COUNT_FLOW                0x01090002
#define ID_ACTION_LEARN_FLOW                0x01090003
#define ID_ACTION_COUNT_CONGESTED           0x01090004
#define ID_ACTION_KNOW_QUEUE_PAIR           0x01090005
#define ID_ACTION_LEARN_QUEUE_PAIR          0x01090006
#define ID_ACTION_COUNT_FLOW_IPV6           0x01090007
#define ID_ACTION_LEARN_FLOW_IPV6           0x01090008
#define ID_ACTION_COUNT_CONGESTED_IPV6      0x01090009
#define ID_ACTION_KNOW_QUEUE_PAIR_IPV6      0x0109000a
#define ID_ACTION_LEARN_QUEUE_PAIR_IPV6     0x0109000b
#define ID_ACTION_OWN_IPV4                  0x010a0001
#define ID_ACTION_PROXY_IPV4                0x010a0002
#define ID_ACTION_OWN_IPV6                  0x010a0003
#define ID_ACTION_PROXY_IPV6                0x010a0004

#define ID_TABLE_DSCP_TO_CLASS              0x02010001
#define ID_TABLE_CLASS_BY_PORT              0x02010002
#define ID_TABLE_IPV4_LPM                   0x02020001
#define ID_TABLE_SOURCE_CHECK               0x02020002
#define ID_TABLE_ECMP_HASH                  0x02020003
#define ID_TABLE_SOURCE_CHECK_IPV6          0x02020004
#define ID_TABLE_IPV6_LPM                   0x02020005
#define ID_TABLE_ECMP_HASH_IPV6             0x02020006
#define ID_TABLE_PUNT                       0x02030001
#define ID_TABLE_PUNT_LIMIT                 0x02030002
#define ID_TABLE_QUEUE_LIMIT                0x02040001
#define ID_TABLE_ECN_RED                    0x02050001
#define ID_TABLE_ECN_CURVE                  0x02050002
#define ID_TABLE_MAXQD_SCALE                0x02060001
#define ID_TABLE_BUFFER_POLICY              0x02080001
#define ID_TABLE_BUFFER_PORT                0x02080002
#define ID_TABLE_VICTIM_PORT                0x02080003
#define ID_TABLE_LOG2_BYTES                 0x02080004
#define ID_TABLE_LOG2_TICKS                 0x02080005
#define ID_TABLE_EXP2                       0x02080006
#define ID_TABLE_HEADROOM_FOR               0x02080007
#define ID_TABLE_PFC_PORT                   0x02080008
#define ID_TABLE_WATCHED_QUEUE              0x02090001
#define ID_TABLE_FLOW                       0x02090002
#define ID_TABLE_CONGESTED_FLOW             0x02090003
#define ID_TABLE_QUEUE_PAIR                 0x02090004
#define ID_TABLE_FLOW_IPV6                  0x02090005
#define ID_TABLE_CONGESTED_FLOW_IPV6        0x02090006
#define ID_TABLE_QUEUE_PAIR_IPV6            0x02090007
#define ID_TABLE_GATEWAY_IPV4               0x020a0001
#define ID_TABLE_GATEWAY_IPV6               0x020a0002

#define ID_HEADER_PACKET_IN                 0x04000001
#define ID_HEADER_PACKET_OUT                0x04000002

#define ID_SELECTOR_ECMP                    0x11020001
#define ID_SELECTOR_ECMP_IPV6               0x11020002

#define ID_COUNTER_DROPS                    0x12000001
#define ID_COUNTER_ECN_MARKS                0x12050001
#define ID_COUNTER_LOSSLESS_DROPS           0x12080001
#define ID_COUNTER_INGRESS_DEPARTURES       0x12080002
#define ID_COUNTER_PFC_PAUSES               0x12080003
#define ID_COUNTER_PFC_RESUMES              0x12080004
#define ID_COUNTER_PFC_REFRESHES            0x12080005

#define ID_DIRECT_COUNTER_FLOW              0x13090001
#define ID_DIRECT_COUNTER_CONGESTED         0x13090002
#define ID_DIRECT_COUNTER_FLOW_IPV6         0x13090003
#define ID_DIRECT_COUNTER_CONGESTED_IPV6    0x13090004

#define ID_REGISTER_PUNT_DUE                0x16030001
#define ID_REGISTER_QUEUE_BYTES             0x16040001
#define ID_REGISTER_ADMISSION_DROPS         0x16040002
#define ID_REGISTER_DEPARTED_BYTES          0x16070001
#define ID_REGISTER_DEPARTED_PACKETS        0x16070002
#define ID_REGISTER_LAST_DELAY              0x16070003
// Only on Tofino: a sum of 48 bits takes two registers, and each queue has its own register.
#define ID_REGISTER_DEPARTED_BYTES_LOW      0x16070004
#define ID_REGISTER_DEPARTED_BYTES_HIGH     0x16070005
#define ID_REGISTER_DEPARTED_PACKETS_LOW    0x16070006
#define ID_REGISTER_DEPARTED_PACKETS_HIGH   0x16070007
#define ID_REGISTER_DEPTH_0                 0x16070010
#define ID_REGISTER_DEPTH_1                 0x16070011
#define ID_REGISTER_DEPTH_2                 0x16070012
#define ID_REGISTER_DEPTH_3                 0x16070013
#define ID_REGISTER_DEPTH_4                 0x16070014
#define ID_REGISTER_DEPTH_5                 0x16070015
#define ID_REGISTER_DEPTH_6                 0x16070016
#define ID_REGISTER_DEPTH_7                 0x16070017
#define ID_REGISTER_BUFFER_PRIVATE          0x16080001
#define ID_REGISTER_BUFFER_SHARED           0x16080002
#define ID_REGISTER_BUFFER_COUNTED          0x16080003
#define ID_REGISTER_BUFFER_HEADROOM         0x16080004
#define ID_REGISTER_BUFFER_TAU              0x16080005
#define ID_REGISTER_BUFFER_PORT_SHARED      0x16080006
#define ID_REGISTER_BUFFER_INSURED          0x16080007
#define ID_REGISTER_BUFFER_PAUSED           0x16080008
#define ID_REGISTER_BUFFER_PAUSED_AT        0x16080009
#define ID_REGISTER_BUFFER_POOLS            0x1608000a
#define ID_REGISTER_SPFC_COUNT              0x1608000b
#define ID_REGISTER_SPFC_PERIOD_END         0x1608000c
#define ID_REGISTER_SPFC_VICTIM             0x1608000d
#define ID_REGISTER_BUFFER_LOAN             0x1608000e
#define ID_REGISTER_ESTIMATE_LENGTH         0x16080011
#define ID_REGISTER_ESTIMATE_TIME           0x16080012
#define ID_REGISTER_ESTIMATE_AVERAGE        0x16080013
#define ID_REGISTER_ESTIMATE_DEVIATION      0x16080014
#define ID_REGISTER_WINDOW_START            0x16080015

#endif
