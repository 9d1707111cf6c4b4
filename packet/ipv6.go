package packet

import (
	"encoding/binary"
	"net/netip"
)

// decodeIPv6 reads the IPv6 header and returns the packet behind it. RoCEv2 has UDP right behind it
// (annex A17.3.1), so that a header between the two is refused.
func (f *Frame) decodeIPv6(b []byte) ([]byte, error) {
	if len(b) < ipv6Len+udpLen {
		return nil, ErrShort
	}
	first := binary.BigEndian.Uint32(b)
	length := int(binary.BigEndian.Uint16(b[4:]))
	switch {
	case first>>28 != 6:
		return nil, ErrIPv6
	case length < udpLen || length > len(b)-ipv6Len:
		return nil, ErrIPv6Len
	case b[6] != protocolUDP:
		return nil, ErrNotUDP
	}
	f.Src, f.Dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	f.DSCP, f.ECN, f.FlowLabel, f.TTL = uint8(first>>22)&63, ECN(first>>20&3), first&MaxFlowLabel, b[7]
	return b[ipv6Len : ipv6Len+length], nil
}

// appendIPv6 appends the IPv6 header of a packet with so many bytes behind it.
func (f *Frame) appendIPv6(b []byte, length int) []byte {
	b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(f.DSCP&63)<<22|uint32(f.ECN&3)<<20|f.FlowLabel&MaxFlowLabel)
	b = append(b, byte(length>>8), byte(length), protocolUDP, f.TTL)
	src, dst := f.Src.As16(), f.Dst.As16()
	return append(append(b, src[:]...), dst[:]...)
}
