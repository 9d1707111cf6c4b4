package packet

import (
	"encoding/binary"
	"errors"

	"github.com/headgate/headgate/units"
)

// EtherTypeMACControl is the EtherType of MAC control frames (IEEE Std 802.3, clause 31),
// which a MAC consumes or discards and never forwards.
const EtherTypeMACControl = 0x8808

const (
	opcodePFC = 0x0101

	pfcVector = ethernetLen + 2 // class-enable vector, behind the opcode
	pfcTimes  = pfcVector + 2
	pfcEnd    = pfcTimes + 2*PFCClasses
)

// PFCLen is the length of a PFC frame without its frame check sequence, in bytes: that of
// every MAC control frame (IEEE Std 802.3, 31.4.1).
const PFCLen = 60

// PFCClasses is the number of priorities of IEEE 802.1Q.
const PFCClasses = 8

// MaxQuanta is the longest pause that a PFC frame can ask for, in quanta.
const MaxQuanta = 1<<16 - 1

// Errors of MAC control frames that are not obeyed, to be tested with errors.Is.
var (
	ErrNotMACControl = errors.New("MAC control: EtherType is not 0x8808")
	ErrShortPFC      = errors.New("MAC control: shorter than 60 bytes")
	ErrPFCOpcode     = errors.New("MAC control: opcode is not 0x0101, PFC")
	ErrPFCAddress    = errors.New("PFC: destination is not 01:80:c2:00:00:01")
	ErrPFCReserved   = errors.New("PFC: reserved bits of the class-enable vector are not 0")
)

// PFCAddress is the multicast address of PFC frames, which bridges do not forward (IEEE Std
// 802.1Q, table 8-1).
func PFCAddress() MAC { return MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01} }

// PFC is a priority-based flow control frame (IEEE Std 802.1Qbb-2011; IEEE Std 802.3,
// annex 31D):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|              Destination address 01:80:C2:00:00:01            |
//	|                               +-------------------------------+
//	|                               |        Source address         |
//	+-------------------------------+                               |
//	|                                                               |
//	+-------------------------------+-------------------------------+
//	|       EtherType 0x8808        |         Opcode 0x0101         |
//	+---------------+---------------+-------------------------------+
//	|       0       |7 6 5 4 3 2 1 0|    Time of class 0, quanta    |
//	+---------------+---------------+-------------------------------+
//	|             ... class 7, and zeros up to 60 bytes             |
//	+---------------------------------------------------------------+
type PFC struct {
	Src     MAC
	Enabled uint8              // bit c: the frame is about class c
	Quanta  [PFCClasses]uint16 // pause time of enabled classes; 0 resumes, n pauses for n*512 bit times
}

// Append appends the frame's wire form, PFCLen bytes; classes that are not enabled get time
// 0.
func (p *PFC) Append(b []byte) []byte {
	dst := PFCAddress()
	b = append(b, dst[:]...)
	b = append(b, p.Src[:]...)
	b = append(b, EtherTypeMACControl>>8, EtherTypeMACControl&0xff, opcodePFC>>8, opcodePFC&0xff, 0, p.Enabled)
	for c, q := range p.Quanta {
		if p.Enabled>>c&1 == 0 {
			q = 0
		}
		b = binary.BigEndian.AppendUint16(b, q)
	}
	var pad [PFCLen - pfcEnd]byte
	return append(b, pad[:]...)
}

// Decode reads a frame. Times of classes that are not enabled read as 0, and the padding is ignored, as the
// standard asks of receivers. A frame that Decode refuses must not be obeyed; *p is then undefined.
func (p *PFC) Decode(b []byte) error {
	switch {
	case !IsMACControl(b):
		return ErrNotMACControl
	case len(b) < PFCLen:
		return ErrShortPFC
	case binary.BigEndian.Uint16(b[ethernetLen:]) != opcodePFC:
		return ErrPFCOpcode
	case MAC(b[:6]) != PFCAddress():
		return ErrPFCAddress
	case b[pfcVector] != 0:
		return ErrPFCReserved
	}
	copy(p.Src[:], b[6:])
	p.Enabled = b[pfcVector+1]
	for c := range p.Quanta {
		p.Quanta[c] = 0
		if p.Enabled>>c&1 != 0 {
			p.Quanta[c] = binary.BigEndian.Uint16(b[pfcTimes+2*c:])
		}
	}
	return nil
}

// IsMACControl reports whether a frame is for the MAC of the port that it arrives on, by
// its EtherType.
func IsMACControl(b []byte) bool {
	return len(b) >= ethernetLen && b[12] == EtherTypeMACControl>>8 && b[13] == EtherTypeMACControl&0xff
}

// Pauses count how often and for how long something was paused: a class, a queue or a port.
type Pauses struct {
	Count uint64     // times that it became paused
	Until units.Time // end of the last pause
	Time  units.Time // length of all pauses, up to Until
}

// Set pauses it from now until a later time. It replaces the pause in force, if there is one;
// with a time that is not later it ends that pause. now never decreases.
func (p *Pauses) Set(now, until units.Time) {
	left := max(0, p.Until-now)
	until = max(until, now)
	if left == 0 && until > now {
		p.Count++
	}
	if left > 0 || until > now {
		p.Time += until - now - left
		p.Until = until
	}
}

// Total returns how long it was paused up to now, which must not be before the last Set.
func (p *Pauses) Total(now units.Time) units.Time { return p.Time - max(0, p.Until-now) }
