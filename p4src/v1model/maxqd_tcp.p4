// SPDX-License-Identifier: Apache-2.0
//
// Stamps the queueing delay into the maxQD option of TCP (int/maxqd/option.go). It leaves the
// option's echo field unchanged.

#ifndef HEADGATE_V1MODEL_MAXQD_TCP_P4
#define HEADGATE_V1MODEL_MAXQD_TCP_P4

// Runs after MaxQd, which computes the queueing delay.
control MaxQdTcp(inout headers_t hdr, in metadata_t meta) {
    // RFC 1624 equation 3. The host that sends it has completed the checksum.
    @hidden
    action stamp() {
        bit<32> sum = (bit<32>)~hdr.tcp.checksum + (bit<32>)~hdr.tcp_maxqd.max_qd + (bit<32>)meta.hop_qd;
        sum = (sum & 0xffff) + (sum >> 16);
        sum = sum + (sum >> 16);
        hdr.tcp.checksum = ~sum[15:0];
        hdr.tcp_maxqd.max_qd = meta.hop_qd;
    }

    apply {
        if (hdr.tcp_maxqd.isValid() && hdr.tcp_maxqd.head == TCP_MAXQD_HEAD &&
            meta.stamping == 1 && meta.hop_qd > hdr.tcp_maxqd.max_qd) {
            // The TCP header must be within the packet, not in Ethernet's padding.
            bit<16> length = (bit<16>)hdr.tcp.data_offset << 2;
            bool within = hdr.ipv6.isValid() ? length <= hdr.ipv6.payload_len
                                             : length + 20 <= hdr.ipv4.total_len;
            // The options in front must have the expected kinds and lengths; otherwise the bytes here
            // could belong to another option.
            bit<4> offset = hdr.tcp.data_offset;
            bit<32> first = hdr.tcp_first.head;
            bit<32> second = hdr.tcp_second.head;
            if (within &&
                (offset == 7 ||
                 offset == 10 && (first == TCP_TIMESTAMPS_HEAD || first == TCP_SACK_HEAD + 8) ||
                 offset == 12 && first == TCP_SACK_HEAD + 16 ||
                 offset == 13 && first == TCP_TIMESTAMPS_HEAD && second == TCP_SACK_HEAD + 8 ||
                 offset == 14 && first == TCP_SACK_HEAD + 24 ||
                 offset == 15 && first == TCP_TIMESTAMPS_HEAD && second == TCP_SACK_HEAD + 16)) {
                stamp();
            }
        }
    }
}

#endif
