// SPDX-License-Identifier: Apache-2.0
//
// What the shared controls name and each target spells differently.

#ifndef HEADGATE_V1MODEL_TARGET_P4
#define HEADGATE_V1MODEL_TARGET_P4

#define ECMP_SELECTOR(members, hash_bits) \
    action_selector(HashAlgorithm.crc32, members, hash_bits)

// The counter of a table, bound by the table's counters property; an action of the table
// counts.
#define DIRECT_COUNTER(name) direct_counter(CounterType.packets_and_bytes) name

// The receiver of learning messages, which v1model wants and P4Runtime does not use.
const bit<32> FLOW_DIGEST_RECEIVER = 1;

// standard_metadata.instance_type of a clone made in ingress, and of one made in egress.
const bit<32> INSTANCE_INGRESS_CLONE = 1;
const bit<32> INSTANCE_EGRESS_CLONE = 2;

#endif
