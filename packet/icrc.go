package packet

import "hash/crc32"

// icrcPseudo is the length of what precedes the payload in the ICRC: eight bytes of ones
// in place of InfiniBand's local route header, IPv4, UDP and BTH.
const icrcPseudo = 8 + ipv4Len + udpLen + BTHLen

// icrc computes the invariant CRC (annex A17.3.3 with §7.8.1): the CRC-32 of Ethernet over
// the packet with every field that may change on the way replaced by ones. ip, udp and
// bth are whole headers; rest runs from the AETH or payload to the end of the padding. A
// shim is not among them: switches change it. The result goes out least significant byte
// first. p is scratch: on the stack it would escape into hash/crc32.
func icrc(p *[icrcPseudo]byte, ip, udp, bth, rest []byte) uint32 {
	for i := range 8 {
		p[i] = 0xff
	}
	h := p[8:]
	copy(h, ip[:ipv4Len])
	h[1] = 0xff               // DSCP and ECN
	h[8] = 0xff               // TTL
	h[10], h[11] = 0xff, 0xff // checksum
	h = h[ipv4Len:]
	copy(h, udp[:udpLen])
	h[6], h[7] = 0xff, 0xff // checksum
	h = h[udpLen:]
	copy(h, bth[:BTHLen])
	h[4] = 0xff // FECN, BECN, reserved
	return crc32.Update(crc32.ChecksumIEEE(p[:]), crc32.IEEETable, rest)
}
