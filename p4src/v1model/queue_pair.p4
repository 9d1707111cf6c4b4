// SPDX-License-Identifier: Apache-2.0
//
// Learns the queue pairs of sources, which PACC's congestion notifications must name. A data
// packet names its destination's queue pair; an acknowledgement names the data sender's.
// The default action reports an unknown queue pair; PACC installs that default.

#ifndef HEADGATE_V1MODEL_QUEUE_PAIR_P4
#define HEADGATE_V1MODEL_QUEUE_PAIR_P4

// The addresses are those of the data packets, not of the acknowledgement.
struct queue_pair_digest_t {
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
    bit<24>     qp;
}

struct queue_pair_ipv6_digest_t {
    ipv6_addr_t src_addr;
    ipv6_addr_t dst_addr;
    bit<24>     qp;
}

control LearnQueuePair(in headers_t hdr, in metadata_t meta) {
    @id(ID_ACTION_KNOW_QUEUE_PAIR)
    @name(".ingress.pacc.know_queue_pair")
    action know_queue_pair() {}

    @id(ID_ACTION_LEARN_QUEUE_PAIR)
    @name(".ingress.pacc.learn_queue_pair")
    action learn_queue_pair() {
        digest<queue_pair_digest_t>(FLOW_DIGEST_RECEIVER,
            {hdr.ipv4.dst_addr, hdr.ipv4.src_addr, hdr.bth.dst_qp});
    }

    @id(ID_TABLE_QUEUE_PAIR)
    @learned
    @name(".ingress.pacc.queue_pair")
    table queue_pair {
        key = {
            hdr.ipv4.dst_addr : exact @id(1) @name("src_addr");
            hdr.ipv4.src_addr : exact @id(2) @name("dst_addr");
            hdr.bth.dst_qp    : exact @id(3) @name("qp");
        }
        actions = { know_queue_pair; @defaultonly learn_queue_pair; }
        default_action = know_queue_pair();
        support_timeout = true;
        size = QUEUE_PAIR_ENTRIES;
    }

    @id(ID_ACTION_KNOW_QUEUE_PAIR_IPV6)
    @name(".ingress.pacc.know_queue_pair_ipv6")
    action know_queue_pair_ipv6() {}

    @id(ID_ACTION_LEARN_QUEUE_PAIR_IPV6)
    @name(".ingress.pacc.learn_queue_pair_ipv6")
    action learn_queue_pair_ipv6() {
        digest<queue_pair_ipv6_digest_t>(FLOW_DIGEST_RECEIVER,
            {hdr.ipv6.dst_addr, hdr.ipv6.src_addr, hdr.bth.dst_qp});
    }

    @id(ID_TABLE_QUEUE_PAIR_IPV6)
    @learned
    @name(".ingress.pacc.queue_pair_ipv6")
    table queue_pair_ipv6 {
        key = {
            hdr.ipv6.dst_addr : exact @id(1) @name("src_addr");
            hdr.ipv6.src_addr : exact @id(2) @name("dst_addr");
            hdr.bth.dst_qp    : exact @id(3) @name("qp");
        }
        actions = { know_queue_pair_ipv6; @defaultonly learn_queue_pair_ipv6; }
        default_action = know_queue_pair_ipv6();
        support_timeout = true;
        size = QUEUE_PAIR_ENTRIES;
    }

    apply {
        if (hdr.bth.isValid() && meta.target.foreign == 0 && hdr.bth.opcode == BTH_ACKNOWLEDGE) {
            if (hdr.ipv6.isValid()) {
                queue_pair_ipv6.apply();
            } else {
                queue_pair.apply();
            }
        }
    }
}

#endif
