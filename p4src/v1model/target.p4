// SPDX-License-Identifier: Apache-2.0
//
// What the shared controls name and each target spells differently.

#ifndef HEADGATE_V1MODEL_TARGET_P4
#define HEADGATE_V1MODEL_TARGET_P4

// The counter of a table, bound by the table's counters property; an action of the table
// counts.
#define DIRECT_COUNTER(name) direct_counter(CounterType.packets_and_bytes) name
#define COUNT_DIRECT(name) name.count()
#define COUNT_DIRECT_EGRESS(name) name.count()

// The table property that lets entries age.
#define IDLE_TIMEOUT support_timeout

// What the parser does about the checksum of the IPv4 header that it has extracted.
// VerifyChecksums does it all.
#define PARSED_IPV4

// The pipeline has the buffer's accounts and makes PFC frames.
#define PIPELINE_HAS_BUFFER

// What only the controls of this target know. The sizes of the policy's pools are in bytes;
// BufferPolicy sets them.
struct target_t {
    bit<1>  ports_found;    // of TCP: no more must be parsed to forward the packet
    bit<1>  foreign;        // to the shim's UDP port, and without a shim
    bit<1>  roce;           // a transport header of InfiniBand says which queue pair it is for
    bit<32> flow_hash;
    bit<32> hash_sum;       // of flow_hash and the switch's seed: by it and the difference the
    bit<32> hash_difference; // next hop is chosen
    bit<6>  dscp;           // of either version of IP
    bit<1>  own;            // the address asked for is the gateway's
    mac_t   gateway_mac;    // what to answer with; 0 for no answer
    bit<32> asked_ipv4;     // the address asked for
    ipv6_addr_t asked_ipv6;
    bit<1>  advertises;     // the packet has become a neighbour advertisement
    bit<32> private_pool;   // what all queues may hold of their private memory
    bit<32> headroom_pool;  // and of headroom; 0 under DSH
    bit<32> insurance_pool; // and all ports of insurance; 0 but under DSH
    bit<32> free;           // of the shared pool
    bit<32> room;           // of the whole buffer
    bit<48> period;         // SPFC's TC, in ticks
    bit<32> depart_limit;   // C·TC/K of the ingress port, in bytes; at least 1
    bit<32> response;       // a PAUSE has stopped the ingress port's peer after so long, in ticks
    bit<1>  was_paused;     // the ingress port had something paused before a departure
    bit<1>  is_paused;      // and has after it
}

// What crosses from ingress to egress with the packet. v1model carries all metadata, not
// only this.
struct bridged_t {
    bit<32>    frame_bytes;    // as on the wire, without FCS and controller header
    class_id_t traffic_class;
    queue_id_t queue;
    bit<1>     poll;           // a poll: its egress answers instead of forwarding
    bit<1>     refresh;        // a packet-out that becomes a PAUSE of what its port has paused
    bit<1>     forget;         // a packet-out that empties its port's accounts
    bit<1>     accounted;      // it takes memory of the buffer, until it leaves
    bit<1>     pacc_watched;   // the packet's queue is one that PACC watches
    bit<32>    pacc_threshold; // Q_th of that queue, in bytes
}

// The receiver of learning messages, which v1model wants and P4Runtime does not use.
const bit<32> FLOW_DIGEST_RECEIVER = 1;

// standard_metadata.instance_type of a clone made in ingress, and of one made in egress.
const bit<32> INSTANCE_INGRESS_CLONE = 1;
const bit<32> INSTANCE_EGRESS_CLONE = 2;

#endif
