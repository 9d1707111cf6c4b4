// SPDX-License-Identifier: Apache-2.0
//
// What the shared controls name and each target spells differently.

#ifndef HEADGATE_V1MODEL_TARGET_P4
#define HEADGATE_V1MODEL_TARGET_P4

#define ECMP_SELECTOR(members, hash_bits) \
    action_selector(HashAlgorithm.crc32, members, hash_bits)

// standard_metadata.instance_type of a clone made in egress.
const bit<32> INSTANCE_EGRESS_CLONE = 2;

#endif
