// SPDX-License-Identifier: Apache-2.0
//
// P4Runtime ids of what only v1model has, by the rules of shared/ids.p4, which has those that
// are older.

#ifndef HEADGATE_V1MODEL_IDS_P4
#define HEADGATE_V1MODEL_IDS_P4

#define ID_ACTION_PERMIT_SOURCE         0x01020002
#define ID_ACTION_REFUSE_SOURCE         0x01020003
#define ID_ACTION_SET_PUNT_LIMIT        0x01030002
#define ID_ACTION_KNOW_QUEUE_PAIR       0x01090005
#define ID_ACTION_LEARN_QUEUE_PAIR      0x01090006

#define ID_TABLE_SOURCE_CHECK           0x02020002
#define ID_TABLE_PUNT_LIMIT             0x02030002
#define ID_TABLE_QUEUE_PAIR             0x02090004

#define ID_REGISTER_PUNT_DUE            0x16030001
#define ID_REGISTER_SPFC_COUNT          0x1608000b
#define ID_REGISTER_SPFC_PERIOD_END     0x1608000c
#define ID_REGISTER_SPFC_VICTIM         0x1608000d

#endif
