// SPDX-License-Identifier: Apache-2.0
//
// The names that each target defines in its own way for the shared controls.

#ifndef HEADGATE_TNA_TARGET_P4
#define HEADGATE_TNA_TARGET_P4

// Groups of next hops, for each version of IP: each takes a row of the selector's memory.
const bit<32> ECMP_GROUPS = 1024;

// Tables in TCAM. A prefix of IPv6 takes three blocks side by side, and four with a port.
const bit<32> ROUTE_IPV6_ENTRIES = 4096;
const bit<32> SOURCE_CHECK_ENTRIES = 2048;
const bit<32> SOURCE_CHECK_IPV6_ENTRIES = 2048;
const bit<32> FLOW_IPV6_ENTRIES = 8192;

// RED matches a queue's depth in cells, in the most bits that a range can have. There is room for 16
// curves.
#define RED_DEPTH meta.target.depth
const bit<20> DEEPEST = 0xfffff;
const bit<32> RED_ENTRIES = RED_CURVE_ENTRIES * 16;

// What a source check does with a refused source. The source is checked beside Validate, whose reason
// comes first.
#define REFUSE_SOURCE meta.target.refused_source = 1

// Bytes that the chip counts and the pipeline does not: Ethernet's checksum, and in egress the metadata
// that crosses from ingress.
const bit<32> FCS_BYTES = 4;
#define EGRESS_OVERHEAD (sizeInBytes(meta.bridged) + FCS_BYTES)

// The counter of a table, bound by the table's counters property; an action of the table
// counts.
#define DIRECT_COUNTER(name) DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) name
#define COUNT_DIRECT(name) name.count(FCS_BYTES)
#define COUNT_DIRECT_EGRESS(name) name.count(EGRESS_OVERHEAD)

// The table property that lets entries age.
#define IDLE_TIMEOUT idle_timeout

// A hook behind the extraction of IPv4: the parser verifies the checksum. In spite of the method's
// name, the result is 1 for a wrong checksum.
#define PARSED_IPV4 \
    ipv4_checksum.add(hdr.ipv4); \
    meta.arrival.bad_checksum = meta.arrival.bad_checksum | (bit<1>)ipv4_checksum.verify();

// The first byte of each packet in egress says what the packet is.
const bit<8> FROM_MIRROR = 0;         // a complete poll report
const bit<8> FROM_INGRESS = 1;        // a frame that is forwarded
const bit<8> FROM_INGRESS_OPAQUE = 2; // from or to the controller: egress does not parse it

// Metadata in front of the packet that crosses from ingress to egress. Each field has its own
// containers, because few places can write one container.
header bridged_t {
    bit<8>          source;         // FROM_*
    @padding bit<7> padding_0;
    port_id_t       ingress_port;
    @padding bit<5> padding_1;
    class_id_t      traffic_class;
    @padding bit<5> padding_2;
    queue_id_t      queue;
    @padding bit<7> padding_3;
    bit<1>          poll;           // the packet is a poll, which egress answers
    @padding bit<7> padding_4;
    bit<1>          pacc_watched;   // PACC watches the packet's queue
    bit<32>         pacc_threshold; // Q_th of that queue, in bytes
#if __TARGET_TOFINO__ == 1
    bit<32>         arrived;        // time of arrival, in ns; wraps after 4.3 s
#endif
}

// The header in front of a mirrored packet.
header mirrored_t {
    bit<8> source; // FROM_MIRROR
}

// Metadata of controls that only this target has.
struct target_t {
    bit<6>     dscp;           // of either version of IP
    bit<1>     refused_source; // the edge port does not permit the source address
    bit<32>    seed;           // of the switch's hash
    bit<2>     hash_by;        // HASH_BY_*
    bit<32>    flow_hash;
    bit<32>    hash_sum;       // flow_hash plus the seed; both sums choose the next hop
    bit<32>    hash_difference; // flow_hash minus the seed
    bit<1>     routed;         // the destination has a next hop
    port_id_t  hop_port;       // and this is it
    mac_t      hop_src_mac;
    mac_t      hop_dst_mac;
#ifdef PIPELINE_IS_GATEWAY
    bit<3>     asks;           // ASKS_*
    bit<32>    asked_ipv4;     // the address asked for
    ipv6_addr_t asked_ipv6;
    bit<32>    differs_ipv4;   // 0 if ARP asks for the sender's own address
    ipv6_addr_t differs_ipv6;  // 0 if a neighbour solicitation does
    bit<1>     answers;        // the request has an answer
    bit<1>     own;            // the address asked for is the gateway's
    mac_t      gateway_mac;    // the MAC address to answer with
    bit<1>     advertises;     // the packet has become a neighbour advertisement
#endif
    bit<8>     curve;          // of RED, for the packet's port and queue
    bit<32>    cells;          // depth of the queue in cells of 64 bytes
    bit<20>    depth;          // the same, saturating
    bit<32>    waited;         // time since the packet arrived, in ns
    MirrorId_t poll_session;   // the mirror session of a poll's report
    bit<16>    least_len;      // the least length of IP that holds the TCP header
    bit<16>    missing_len;    // that minus IP's length; 0 if the header is within
    bit<16>    growth_tcp;     // hop_qd minus the option's largest delay; 0 below it
    bit<16>    tcp_sum;        // the sum under TCP's checksum, without the option's largest delay
    bit<1>     stamped_tcp;    // TCP's checksum has changed
    bit<32>    minus_bytes;    // minus the bytes of the frame as it arrived, without FCS and controller header
    bit<16>    bytes_carry;    // of the port's sums
    bit<16>    packets_carry;
}

#ifdef PIPELINE_IS_GATEWAY
// What a packet asks the gateway.
const bit<3> ASKS_NOTHING = 0;
const bit<3> ASKS_ARP = 1;
const bit<3> ASKS_NEIGHBOR = 2;
const bit<3> ASKS_ECHO_IPV4 = 3;
const bit<3> ASKS_ECHO_IPV6 = 4;
#endif

// The fields that FlowHash takes of a packet.
const bit<2> HASH_BY_FIVE_TUPLE = 0;
const bit<2> HASH_BY_QUEUE_PAIR = 1;
const bit<2> HASH_BY_FLOW_LABEL = 2; // only of IPv6

// What the deparsers send besides the packet. 0 is nothing on Tofino 2.
const DigestType_t DIGEST_FLOW = 1;
const DigestType_t DIGEST_FLOW_IPV6 = 2;
const MirrorType_t MIRROR_POLL = 1;

// drop_ctl: the packet is dropped, but not its mirror copy.
const bit<3> DROP_PACKET = 1;

#endif
