package port

import (
	"encoding/binary"
	"math/bits"
)

// Offloads. A host may leave checksums and segmentation to its interface, and a virtual interface
// does neither. Its frames then reach the switch with a partial checksum (only the pseudo
// header's, CHECKSUM_PARTIAL in Linux), or as one long TCP segment (TSO, GRO). The receiver behind
// the switch would drop them, so the port does here what the sender's interface left undone.

const (
	protocolTCP = 6
	protocolUDP = 17

	linkHeader = 14 // bytes of an Ethernet header
	vlanTag    = 4
)

type transport struct {
	network  int // offset of the IP header
	segment  int // offset of the TCP or UDP header
	end      int // offset behind the IP packet
	protocol byte
}

// transportOf finds the TCP or UDP segment of a frame, behind up to two VLAN tags. It finds none
// in IP fragments and none behind IPv6 extension headers.
func transportOf(f []byte) (t transport, ok bool) {
	at := 12
	for tags := 0; at+2 <= len(f); at, tags = at+vlanTag, tags+1 {
		switch binary.BigEndian.Uint16(f[at:]) {
		case 0x8100, 0x88a8:
			if tags == 2 {
				return t, false
			}
			continue
		case 0x0800:
			return ipv4Transport(f, at+2)
		case 0x86dd:
			return ipv6Transport(f, at+2)
		}
		break
	}
	return t, false
}

func ipv4Transport(f []byte, at int) (t transport, ok bool) {
	if len(f) < at+20 || f[at]>>4 != 4 || binary.BigEndian.Uint16(f[at+6:])&0x3fff != 0 {
		return t, false
	}
	t = transport{at, at + int(f[at]&15)*4, at + int(binary.BigEndian.Uint16(f[at+2:])), f[at+9]}
	return t, t.segment >= at+20 && t.fits(f)
}

func ipv6Transport(f []byte, at int) (t transport, ok bool) {
	if len(f) < at+40 || f[at]>>4 != 6 {
		return t, false
	}
	t = transport{at, at + 40, at + 40 + int(binary.BigEndian.Uint16(f[at+4:])), f[at+6]}
	return t, t.fits(f)
}

// fits reports whether the frame has the whole segment and its header.
func (t transport) fits(f []byte) bool {
	header := 8
	switch t.protocol {
	case protocolTCP:
		header = 20
	case protocolUDP:
	default:
		return false
	}
	return t.end <= len(f) && t.segment+header <= t.end
}

func (t transport) checksum(f []byte) []byte {
	if t.protocol == protocolUDP {
		return f[t.segment+6 : t.segment+8]
	}
	return f[t.segment+16 : t.segment+18]
}

// pseudo returns the sum over the pseudo header (RFC 9293, 3.1; RFC 8200, 8.1).
func (t transport) pseudo(f []byte) uint64 {
	addresses := f[t.network+12 : t.network+20]
	if f[t.network]>>4 == 6 {
		addresses = f[t.network+8 : t.network+40]
	}
	return sum(addresses) + uint64(t.protocol) + uint64(t.end-t.segment)
}

// partial reports whether the checksum covers only the pseudo header. One in 65 536 frames with a
// complete checksum looks the same; complete leaves such a frame unchanged.
func (t transport) partial(f []byte) bool {
	v := binary.BigEndian.Uint16(t.checksum(f))
	return v != 0 && v == fold(t.pseudo(f))
}

// complete computes the checksum of the segment (RFC 1071).
func (t transport) complete(f []byte) {
	field := t.checksum(f)
	field[0], field[1] = 0, 0
	v := ^fold(t.pseudo(f) + sum(f[t.segment:t.end]))
	if v == 0 && t.protocol == protocolUDP {
		v = 0xffff // 0 would mean that there is no checksum
	}
	binary.BigEndian.PutUint16(field, v)
}

// finishChecksum completes the checksum of a frame if the sender left it partial.
func finishChecksum(f []byte, c *counters) {
	if t, ok := transportOf(f); ok && t.partial(f) {
		t.complete(f)
		if c.rxCompleted.Add(1) == 1 && c.offload != nil {
			c.offload()
		}
	}
}

// split cuts a long TCP segment, or merged UDP datagrams, as the sender's interface would have
// done: each frame but the last has size bytes of data. It appends the frames to frames and their
// bytes to memory. It appends none if the frame cannot be cut.
func (t transport) split(frames [][]byte, memory, f []byte, size int) ([][]byte, []byte) {
	tcp := t.protocol == protocolTCP
	data, least := t.segment+8, t.segment+8
	if tcp {
		data, least = t.segment+int(f[t.segment+12]>>4)*4, t.segment+20
	}
	if data < least || data >= t.end || size <= 0 {
		return frames, memory
	}
	if need := len(memory) + (t.end-data+size-1)/size*data + t.end - data; need > cap(memory) {
		memory = append(make([]byte, 0, need), memory...)
	}
	const fin, psh, cwr = 0x01, 0x08, 0x80
	v4 := f[t.network]>>4 == 4
	sequence := binary.BigEndian.Uint32(f[t.segment+4:])
	for at, i := data, uint16(0); at < t.end; at, i = at+size, i+1 {
		part := f[at:min(at+size, t.end)]
		start := len(memory)
		memory = append(append(memory, f[:data]...), part...)
		out := memory[start:len(memory):len(memory)]
		s := t
		s.end = len(out)
		if !tcp {
			binary.BigEndian.PutUint16(out[t.segment+4:], uint16(s.end-t.segment))
		} else {
			binary.BigEndian.PutUint32(out[t.segment+4:], sequence+uint32(at-data))
			if at+size < t.end {
				out[t.segment+13] &^= fin | psh
			}
			if i > 0 {
				out[t.segment+13] &^= cwr
			}
		}
		if ip := out[t.network:]; v4 {
			binary.BigEndian.PutUint16(ip[2:], uint16(s.end-t.network))
			binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+i)
			ip[10], ip[11] = 0, 0
			binary.BigEndian.PutUint16(ip[10:], ^fold(sum(out[t.network:t.segment])))
		} else {
			binary.BigEndian.PutUint16(ip[4:], uint16(s.end-t.segment))
		}
		s.complete(out)
		frames = append(frames, out)
	}
	return frames, memory
}

// sum adds 16-bit words (RFC 1071). An odd last byte is the upper half of a word. sum adds blocks of 32 bytes in
// little-endian order, which is faster, and swaps the bytes of the result: a ones' complement sum does not depend
// on the order.
func sum(b []byte) (total uint64) {
	var blocks, carry uint64
	for ; len(b) >= 32; b = b[32:] {
		blocks, carry = bits.Add64(blocks, binary.LittleEndian.Uint64(b), carry)
		blocks, carry = bits.Add64(blocks, binary.LittleEndian.Uint64(b[8:]), carry)
		blocks, carry = bits.Add64(blocks, binary.LittleEndian.Uint64(b[16:]), carry)
		blocks, carry = bits.Add64(blocks, binary.LittleEndian.Uint64(b[24:]), carry)
	}
	total = uint64(bits.ReverseBytes16(fold(blocks>>32 + blocks&0xffffffff + carry)))
	for ; len(b) >= 2; b = b[2:] {
		total += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		total += uint64(b[0]) << 8
	}
	return total
}

func fold(total uint64) uint16 {
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return uint16(total)
}
