package port

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
)

// A host with segmentation offload (TSO) gives its interface TCP segments of up to 64 KB. The receiving port cuts
// them (transport.split), so that the program sees packets of the MTU. If the packets leave one after another, the
// sending port joins them again to one frame. The kernel passes this frame on whole, or cuts it if the interface
// cannot take it. The kernel takes most of the switch's time per packet, so this makes TCP several times as fast.

// longSegments is set once a port of this process has cut a long TCP segment. Until then the hosts
// cut their segments themselves, and ports join none: a program that captures frames behind the
// switch sees them as they were sent.
var longSegments atomic.Bool

// A joined is a frame of TCP segments that follow one another in a stream. The zero value is a
// frame that cannot be joined with another.
type joined struct {
	transport     // header fields of the first segment
	data      int // offset of the data
	size      int // bytes of data of each segment; the last may have fewer
	parts     int // segments
	open      bool
}

const tcpPush, tcpACK = 0x08, 0x10

// longestIP is the largest total length of an IPv4 packet.
const longestIP = 1<<16 - 1

// first returns the joined frame that a frame begins. It is open if a next segment may follow. A
// segment may be joined with others if its only flags are ACK and, on the last, PSH, and if its
// checksums are right, because the kernel computes new ones.
func first(f []byte) (j joined) {
	t, ok := transportOf(f)
	if !ok || t.protocol != protocolTCP || t.network != linkHeader || t.end != len(f) {
		return joined{}
	}
	j = joined{transport: t, data: t.segment + int(f[t.segment+12]>>4)*4, parts: 1}
	j.size = t.end - j.data
	j.open = j.data >= t.segment+20 && j.size > 0 && f[t.segment+13] == tcpACK && t.right(f)
	return j
}

// right reports whether the checksums of the segment and of its IPv4 header are right.
func (t transport) right(f []byte) bool {
	return fold(t.pseudo(f)+sum(f[t.segment:t.end])) == 0xffff && (f[t.network]>>4 == 6 || fold(sum(f[t.network:t.segment])) == 0xffff)
}

// add reports whether frame f is the segment that follows the joined frame whole, and counts it if
// so. The caller appends its data.
func (j *joined) add(whole, f []byte) bool {
	n := len(f) - j.data
	if !j.open || n <= 0 || n > j.size || len(whole)+n-j.network > longestIP {
		return false
	}
	t := j.transport
	t.end = len(f)
	var header [linkHeader + 60 + 60]byte
	h := header[:copy(header[:], f[:j.data])]
	tcp, of := h[j.segment:], whole[j.segment:]
	flags := tcp[13]
	if binary.BigEndian.Uint32(tcp[4:]) != binary.BigEndian.Uint32(of[4:])+uint32(len(whole)-j.data) || flags&^tcpPush != tcpACK {
		return false
	}
	copy(tcp[4:8], of[4:8])
	tcp[13] = of[13]
	copy(tcp[16:18], of[16:18])
	if ip, of := h[j.network:], whole[j.network:]; ip[0]>>4 == 6 {
		if int(binary.BigEndian.Uint16(ip[4:])) != t.end-t.segment {
			return false
		}
		copy(ip[4:6], of[4:6])
	} else {
		if int(binary.BigEndian.Uint16(ip[2:])) != t.end-t.network || binary.BigEndian.Uint16(ip[4:]) != binary.BigEndian.Uint16(of[4:])+uint16(j.parts) {
			return false
		}
		copy(ip[2:6], of[2:6])
		copy(ip[10:12], of[10:12])
	}
	if !bytes.Equal(h, whole[:j.data]) || !t.right(f) {
		return false
	}
	j.parts++
	j.open = n == j.size && flags == tcpACK
	if flags != tcpACK {
		whole[j.segment+13] |= tcpPush
	}
	return true
}

// finish makes whole the frame that a sender with segmentation offload gives to its interface, and
// fills in its virtio_net header (Virtual I/O Device 1.2, 5.1.6). It does nothing to a lone segment.
func (j *joined) finish(header, whole []byte) {
	if j.parts < 2 {
		return
	}
	const needsChecksum, tcp4, tcp6, checksumAt = 1, 1, 4, 16
	j.end = len(whole)
	header[0], header[1] = needsChecksum, tcp4
	if ip := whole[j.network:]; ip[0]>>4 == 6 {
		header[1] = tcp6
		binary.BigEndian.PutUint16(ip[4:], uint16(j.end-j.segment))
	} else {
		binary.BigEndian.PutUint16(ip[2:], uint16(j.end-j.network))
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^fold(sum(whole[j.network:j.segment])))
	}
	binary.NativeEndian.PutUint16(header[2:], uint16(j.data))
	binary.NativeEndian.PutUint16(header[4:], uint16(j.size))
	binary.NativeEndian.PutUint16(header[6:], uint16(j.segment))
	binary.NativeEndian.PutUint16(header[8:], checksumAt)
	binary.BigEndian.PutUint16(j.checksum(whole), fold(j.pseudo(whole)))
}
