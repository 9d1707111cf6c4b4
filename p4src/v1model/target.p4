// SPDX-License-Identifier: Apache-2.0
//
// The names that the shared controls use and that each target defines in its own way.

#ifndef HEADGATE_V1MODEL_TARGET_P4
#define HEADGATE_V1MODEL_TARGET_P4

// The counter of a table, bound by the table's counters property; an action of the table
// counts.
#define DIRECT_COUNTER(name) direct_counter(CounterType.packets_and_bytes) name
#define COUNT_DIRECT(name) name.count()
#define COUNT_DIRECT_EGRESS(name) name.count()

// The table property that lets entries age.
#define IDLE_TIMEOUT support_timeout

// A hook behind the extraction of IPv4, for targets that verify its checksum in the parser. Empty
// here, because VerifyChecksums does it.
#define PARSED_IPV4

// Optional parts of this target's pipeline: the buffer's accounts with PFC frames, and the gateway's answers.
#define PIPELINE_HAS_BUFFER
#define PIPELINE_IS_GATEWAY

// The statement by which a source check refuses a packet.
#define REFUSE_SOURCE meta.drop_reason = DROP_SOURCE

// RED looks at a queue's depth in bytes. There is room for 64 curves.
#define RED_DEPTH meta.departure.queue_bytes
const bit<32> RED_ENTRIES = RED_CURVE_ENTRIES * 64;

// Two entries of IPv4 and four of IPv6 for each port, and as many again for ports with several addresses.
const bit<32> SOURCE_CHECK_ENTRIES = PORT_CELLS * 8;
const bit<32> SOURCE_CHECK_IPV6_ENTRIES = PORT_CELLS * 8;
const bit<32> FLOW_IPV6_ENTRIES = FLOW_ENTRIES;

// Metadata of controls that only this target has. BufferPolicy sets the sizes of the pools, in
// bytes.
struct target_t {
    bit<1>  ports_found;    // TCP's ports are parsed, which is all that forwarding needs
    bit<1>  foreign;        // to the shim's UDP port, but without a shim
    bit<1>  roce;           // has an InfiniBand transport header, which names a queue pair
    bit<32> flow_hash;
    bit<32> hash_sum;       // flow_hash plus the switch's seed; both sums choose the next hop
    bit<32> hash_difference; // flow_hash minus the seed
    bit<6>  dscp;           // of either version of IP
    bit<1>  own;            // the address asked for is the gateway's
    mac_t   gateway_mac;    // the MAC address to answer with; 0 for no answer
    bit<32> asked_ipv4;     // the address asked for
    ipv6_addr_t asked_ipv6;
    bit<1>  advertises;     // the packet has become a neighbour advertisement
    bit<8>  curve;          // of RED, for the packet's port and queue
    bit<32> private_pool;   // size of all queues' private memory together
    bit<32> headroom_pool;  // size of all headroom; 0 under DSH
    bit<32> insurance_pool; // size of all ports' insurance; 0 except under DSH
    bit<32> free;           // free bytes of the shared pool
    bit<32> victim_free;    // bytes that a victim's port may add to the shared pool
    bit<32> room;           // free bytes of the whole buffer
    bit<48> period;         // SPFC's TC, in ticks
    bit<32> depart_limit;   // C·TC/K of the ingress port, in bytes; at least 1
    bit<32> response;       // time until a PAUSE stops the ingress port's peer, in ticks
    bit<1>  was_paused;     // the ingress port had a paused class before the departure
    bit<1>  is_paused;      // and after it
}

// Metadata that the packet carries from ingress to egress. v1model carries all metadata; Tofino
// only this struct.
struct bridged_t {
    bit<32>    frame_bytes;    // as on the wire, without FCS and controller header
    class_id_t traffic_class;
    queue_id_t queue;
    bit<1>     poll;           // the packet is a poll, which egress answers
    bit<1>     refresh;        // a packet-out that becomes a PAUSE of what its port has paused
    bit<1>     forget;         // a packet-out that empties its port's accounts
    bit<1>     accounted;      // the packet is in a pool of the buffer
    bit<1>     pacc_watched;   // PACC watches the packet's queue
    bit<32>    pacc_threshold; // Q_th of that queue, in bytes
}

// The receiver number that v1model's digest() takes; P4Runtime does not use it.
const bit<32> FLOW_DIGEST_RECEIVER = 1;

// standard_metadata.instance_type of a clone made in ingress, and of one made in egress.
const bit<32> INSTANCE_INGRESS_CLONE = 1;
const bit<32> INSTANCE_EGRESS_CLONE = 2;

#endif
