package packet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"

	"github.com/headgate/headgate/int/maxqd"
)

// RoCEv2Port is the UDP port of RoCEv2 without a shim (annex A17.7).
const RoCEv2Port = 4791

const (
	ethernetLen = 14
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8

	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
	protocolUDP   = 17
	dontFragment  = 0x4000
)

// DataOverhead is the length of the headers and trailers of a full data packet with the shim, without preamble,
// FCS and gap, in bytes over IPv4. [Overhead] has it for both versions.
const DataOverhead = ethernetLen + ipv4Len + udpLen + maxqd.Len + BTHLen + ICRCLen

// IPv6Extra is how much longer the header of IPv6 is than that of IPv4, in bytes.
const IPv6Extra = ipv6Len - ipv4Len

// Overhead returns the length that DataOverhead has for an address's version of IP.
func Overhead(ip netip.Addr) int {
	if ip.Is6() {
		return DataOverhead + IPv6Extra
	}
	return DataOverhead
}

// ACKLen is the length of an acknowledgement with the shim, in bytes over IPv4.
const ACKLen = DataOverhead + AETHLen

// MaxPayload is the largest payload that an IPv4 packet of 65 535 bytes holds.
const MaxPayload = 65535 - (DataOverhead - ethernetLen) - AETHLen - 3

// MaxFlowLabel bounds the 20-bit field of IPv6 (RFC 6437).
const MaxFlowLabel = 1<<20 - 1

// ECN is the two-bit field of RFC 3168.
type ECN uint8

// The codepoints.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// MAC is an Ethernet address.
type MAC [6]byte

// Gateway is the default destination MAC address of hosts' frames. Switches route by the IP address alone and
// ignore this address. It is locally administered (IEEE Std 802, 8.2) and belongs to no machine, so that no
// kernel on the path takes the frames for its own.
var Gateway = MAC{0x02, 0, 0, 0, 0, 0xfe}

// String prints the address in the usual form.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Errors of frames that cannot be read, to be tested with errors.Is. Errors of maxqd and of the transport
// headers are possible too.
var (
	ErrShort     = errors.New("frame: shorter than its headers")
	ErrNotIP     = errors.New("frame: EtherType is neither IPv4 nor IPv6")
	ErrIPv4      = errors.New("IPv4: version is not 4 or the header is not 20 bytes")
	ErrIPv4Sum   = errors.New("IPv4: wrong header checksum")
	ErrFragment  = errors.New("IPv4: a fragment")
	ErrIPv4Len   = errors.New("IPv4: total length does not fit the frame")
	ErrIPv6      = errors.New("IPv6: version is not 6")
	ErrIPv6Len   = errors.New("IPv6: payload length does not fit the frame")
	ErrNotUDP    = errors.New("IP: what follows the header is not UDP")
	ErrUDPLen    = errors.New("UDP: length does not fit the IP packet")
	ErrPort      = errors.New("UDP: destination port is neither RoCEv2's nor the shim's")
	ErrNotBTH    = errors.New("maxQD shim: next header is not BTH")
	ErrTransport = errors.New("RoCEv2: shorter than its padding and ICRC")
	ErrICRC      = errors.New("RoCEv2: wrong ICRC")
)

// Frame is a RoCEv2 frame. A Frame that is used again encodes and decodes without allocating. It has a shim if
// DstPort is the shim's port, none if it is RoCEv2Port. Only Acknowledge has an AETH.
type Frame struct {
	DstMAC, SrcMAC   MAC
	Src, Dst         netip.Addr // both IPv4, or both IPv6 without a zone
	DSCP             uint8      // 0 to 63
	ECN              ECN
	TTL              uint8  // IPv6's hop limit
	FlowLabel        uint32 // flow label of IPv6, at most MaxFlowLabel; 0 over IPv4
	SrcPort, DstPort uint16
	ShimPort         uint16 // UDP port of frames with a shim, an input of Decode too; 0 means maxqd.Port
	Shim             maxqd.Shim
	BTH              BTH
	AETH             AETH
	Payload          []byte // without padding; after Decode part of the frame given

	pseudo [icrcPseudo]byte // scratch
}

// HasShim reports whether the frame's port is the shim's.
func (f *Frame) HasShim() bool { return f.DstPort == cmp.Or(f.ShimPort, maxqd.Port) }

// Append appends the frame's wire form with checksums, padding and ICRC; it sets the
// shim's next header and the BTH's pad count. UDP's checksum is 0, which RFC 768 allows
// over IPv4 and RFC 6935 over IPv6: switches change what it would cover. The payload must be at most
// MaxPayload.
func (f *Frame) Append(b []byte) []byte {
	f.BTH.Pad = uint8(-len(f.Payload) & 3)
	udpBytes := udpLen + BTHLen + len(f.Payload) + int(f.BTH.Pad) + ICRCLen
	shim := f.HasShim()
	if shim {
		udpBytes += maxqd.Len
	}
	if f.BTH.Opcode == Acknowledge {
		udpBytes += AETHLen
	}
	b = append(b, f.DstMAC[:]...)
	b = append(b, f.SrcMAC[:]...)
	ip := len(b) + 2
	if f.Src.Is4() {
		b = binary.BigEndian.AppendUint16(b, etherTypeIPv4)
		b = f.appendIPv4(b, udpBytes)
	} else {
		b = binary.BigEndian.AppendUint16(b, etherTypeIPv6)
		b = f.appendIPv6(b, udpBytes)
	}
	udp := len(b)
	b = append(b, byte(f.SrcPort>>8), byte(f.SrcPort), byte(f.DstPort>>8), byte(f.DstPort), byte(udpBytes>>8), byte(udpBytes), 0, 0)
	if shim {
		f.Shim.Next = maxqd.BTH
		b = f.Shim.Append(b)
	}
	bth := len(b)
	b = f.BTH.Append(b)
	if f.BTH.Opcode == Acknowledge {
		b = f.AETH.Append(b)
	}
	b = append(b, f.Payload...)
	b = append(b, "\x00\x00\x00"[:f.BTH.Pad]...)
	crc := icrc(&f.pseudo, b[ip:udp], b[udp:], b[bth:], b[bth+BTHLen:])
	return binary.LittleEndian.AppendUint32(b, crc)
}

func (f *Frame) appendIPv4(b []byte, length int) []byte {
	ip, total := len(b), ipv4Len+length
	src, dst := f.Src.As4(), f.Dst.As4()
	// An unfragmentable datagram needs no identification (RFC 6864 §4.1).
	b = append(b, 0x45, f.DSCP<<2|byte(f.ECN), byte(total>>8), byte(total),
		0, 0, dontFragment>>8, 0, f.TTL, protocolUDP, 0, 0,
		src[0], src[1], src[2], src[3], dst[0], dst[1], dst[2], dst[3])
	binary.BigEndian.PutUint16(b[ip+10:], ^onesSum(b[ip:]))
	return b
}

// Decode reads a frame, checks checksum and ICRC, and leaves f's payload pointing into b.
// Ethernet's padding behind the IP packet is ignored.
func (f *Frame) Decode(b []byte) error {
	if len(b) < ethernetLen+ipv4Len+udpLen {
		return ErrShort
	}
	copy(f.DstMAC[:], b)
	copy(f.SrcMAC[:], b[6:])
	ip := b[ethernetLen:]
	header := ip[:ipv4Len]
	var udp []byte
	var err error
	switch binary.BigEndian.Uint16(b[12:]) {
	case etherTypeIPv4:
		udp, err = f.decodeIPv4(ip)
	case etherTypeIPv6:
		if udp, err = f.decodeIPv6(ip); err == nil {
			header = ip[:ipv6Len]
		}
	default:
		err = ErrNotIP
	}
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint16(udp[4:]))
	if n < udpLen || n > len(udp) {
		return ErrUDPLen
	}
	f.SrcPort, f.DstPort = binary.BigEndian.Uint16(udp), binary.BigEndian.Uint16(udp[2:])
	rest := udp[udpLen:n]
	switch f.DstPort {
	case cmp.Or(f.ShimPort, maxqd.Port):
		if err := f.Shim.Decode(rest); err != nil {
			return err
		}
		if f.Shim.Next != maxqd.BTH {
			return ErrNotBTH
		}
		rest = rest[maxqd.Len:]
	case RoCEv2Port:
		f.Shim = maxqd.Shim{}
	default:
		return ErrPort
	}
	return f.decodeTransport(header, udp, rest)
}

func (f *Frame) decodeIPv4(b []byte) ([]byte, error) {
	total := int(binary.BigEndian.Uint16(b[2:]))
	switch {
	case b[0] != 0x45:
		return nil, ErrIPv4
	case total < ipv4Len+udpLen || total > len(b):
		return nil, ErrIPv4Len
	case onesSum(b[:ipv4Len]) != 0xffff:
		return nil, ErrIPv4Sum
	case binary.BigEndian.Uint16(b[6:])&0x3fff != 0:
		return nil, ErrFragment
	case b[9] != protocolUDP:
		return nil, ErrNotUDP
	}
	f.DSCP, f.ECN, f.FlowLabel, f.TTL = b[1]>>2, ECN(b[1]&3), 0, b[8]
	f.Src, f.Dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	return b[ipv4Len:total], nil
}

// decodeTransport reads from the BTH on.
func (f *Frame) decodeTransport(ip, udp, b []byte) error {
	if err := f.BTH.Decode(b); err != nil {
		return err
	}
	body := b[BTHLen:]
	f.AETH = AETH{}
	skip := 0
	if f.BTH.Opcode == Acknowledge {
		if err := f.AETH.Decode(body); err != nil {
			return err
		}
		skip = AETHLen
	}
	end := len(body) - ICRCLen
	if end-int(f.BTH.Pad) < skip {
		return ErrTransport
	}
	if binary.LittleEndian.Uint32(body[end:]) != icrc(&f.pseudo, ip, udp, b, body[:end]) {
		return ErrICRC
	}
	f.Payload = body[skip : end-int(f.BTH.Pad)]
	return nil
}

// onesSum adds 16-bit words in ones' complement (RFC 1071).
func onesSum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// icrcPseudo is the largest number of bytes before the payload in the ICRC's input: eight bytes of ones in
// place of InfiniBand's local route header, IPv6, UDP and BTH.
const icrcPseudo = 8 + ipv6Len + udpLen + BTHLen

// icrc computes the invariant CRC (annex A17.3.3 with §7.8.1): the CRC-32 of Ethernet over
// the packet with every field that may change on the way replaced by ones. ip is the whole header,
// udp and bth begin with theirs; rest runs from the AETH or payload to the end of the padding. A
// shim is not among them: switches change it. The result goes out least significant byte
// first. p is scratch: on the stack it would escape into hash/crc32.
func icrc(p *[icrcPseudo]byte, ip, udp, bth, rest []byte) uint32 {
	const ones = 0xff
	for i := range 8 {
		p[i] = ones
	}
	h := p[8:]
	n := copy(h, ip)
	if n == ipv4Len {
		h[1] = ones               // DSCP and ECN
		h[8] = ones               // TTL
		h[10], h[11] = ones, ones // checksum
	} else {
		h[0] |= 0xf                         // traffic class
		h[1], h[2], h[3] = ones, ones, ones // traffic class and flow label
		h[7] = ones                         // hop limit
	}
	h = h[n:]
	copy(h, udp[:udpLen])
	h[6], h[7] = ones, ones // checksum
	h = h[udpLen:]
	copy(h, bth[:BTHLen])
	h[4] = ones // FECN, BECN, reserved
	return crc32.Update(crc32.ChecksumIEEE(p[:8+n+udpLen+BTHLen]), crc32.IEEETable, rest)
}

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

func (f *Frame) appendIPv6(b []byte, length int) []byte {
	b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(f.DSCP&63)<<22|uint32(f.ECN&3)<<20|f.FlowLabel&MaxFlowLabel)
	b = append(b, byte(length>>8), byte(length), protocolUDP, f.TTL)
	src, dst := f.Src.As16(), f.Dst.As16()
	return append(append(b, src[:]...), dst[:]...)
}
