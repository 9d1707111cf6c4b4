// SPDX-License-Identifier: Apache-2.0
//
// What the shared controls name and each target spells differently.

#ifndef HEADGATE_TNA_TARGET_P4
#define HEADGATE_TNA_TARGET_P4

// Groups of next hops: a row of the selector's memory for each, one memory in all.
const bit<32> ECMP_GROUPS = 1024;

// What the chip counts as a packet's bytes and we do not: Ethernet's checksum, and in egress
// what it carries over from ingress.
const bit<32> FCS_BYTES = 4;
#define EGRESS_OVERHEAD (sizeInBytes(meta.bridged) + FCS_BYTES)

// The counter of a table, bound by the table's counters property; an action of the table
// counts.
#define DIRECT_COUNTER(name) DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) name
#define COUNT_DIRECT(name) name.count(FCS_BYTES)
#define COUNT_DIRECT_EGRESS(name) name.count(EGRESS_OVERHEAD)

// The table property that lets entries age.
#define IDLE_TIMEOUT idle_timeout

// What the parser does about the checksum of the IPv4 header that it has extracted. The
// result is 1 for a wrong one, in spite of the method's name.
#define PARSED_IPV4 \
    ipv4_checksum.add(hdr.ipv4); \
    meta.arrival.bad_checksum = meta.arrival.bad_checksum | (bit<1>)ipv4_checksum.verify();

// The first byte of everything that comes to egress says what it is.
const bit<8> FROM_MIRROR = 0;         // a poll's report, complete
const bit<8> FROM_INGRESS = 1;        // a frame that is forwarded
const bit<8> FROM_INGRESS_OPAQUE = 2; // from or to the controller: it is payload to egress

// What crosses from ingress to egress, in front of the packet. Each field has containers of
// its own, since few places at once can write into one.
header bridged_t {
    bit<8>          source;         // FROM_*
    @padding bit<7> padding_0;
    port_id_t       ingress_port;
    @padding bit<5> padding_1;
    class_id_t      traffic_class;
    @padding bit<5> padding_2;
    queue_id_t      queue;
    @padding bit<7> padding_3;
    bit<1>          poll;           // a poll: its egress answers instead of forwarding
    @padding bit<7> padding_4;
    bit<1>          pacc_watched;   // the packet's queue is one that PACC watches
    bit<32>         pacc_threshold; // Q_th of that queue, in bytes
#if __TARGET_TOFINO__ == 1
    bit<32>         arrived;        // when, in ns; wraps after 4.3 s
#endif
}

// What a mirrored packet has in front.
header mirrored_t {
    bit<8> source; // FROM_MIRROR
}

// The chip's own metadata.
struct target_t {
    bit<32>    seed;          // of the switch's hash
    bit<1>     by_queue_pair; // what is hashed of the packet
    bit<32>    flow_hash;
    bit<32>    hash_sum;      // of flow_hash and seed: by it and the difference the next hop
    bit<32>    hash_difference; // is chosen
    bit<32>    waited;        // since the packet arrived, in ns
    MirrorId_t poll_session;  // where a poll's report goes
    bit<32>    minus_bytes;   // of the frame as it arrived, without FCS and controller header
    bit<16>    bytes_carry;   // of the port's sums
    bit<16>    packets_carry;
}

// The deparsers' lists, by which they know what to do. 0 is none on Tofino 2.
const DigestType_t DIGEST_FLOW = 1;
const MirrorType_t MIRROR_POLL = 1;

// drop_ctl: the packet ends here, its mirror copy lives on.
const bit<3> DROP_PACKET = 1;

#endif
