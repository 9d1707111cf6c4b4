// Package maxqd is Söze's telemetry: the shim header that carries the largest queueing delay of a packet's
// hops, a switch's operation on it, and the unit of the delay. The P4 program's control maxqd does the same;
// differential tests compare the two.
package maxqd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// Port is the default UDP port of packets with a shim, data and acknowledgements; the fabric file may set
// another. IANA has assigned no port, so this one is from the dynamic range (RFC 6335 §6). Programs for chips
// have the port compiled in, so v1model's default must be the same. Linux gives ports of that range to any
// socket. So v1model's program checks that a transport header follows the shim, and compares the 48 bits that
// are constant in both with the values of Headgate's hosts. It forwards any other packet unchanged.
const Port = 50151

// Version is the shim's version that this package speaks.
const Version = 1

// Len is the length of a shim in bytes.
const Len = 4

// NextHeader is the kind of header that follows a shim.
type NextHeader uint8

// The next headers.
const (
	Opaque NextHeader = 0 // anything; v1model's program does not stamp it
	BTH    NextHeader = 1 // an InfiniBand base transport header
)

// Errors of a shim that cannot be read, to be tested with errors.Is.
var (
	ErrShort    = errors.New("maxQD shim: shorter than 4 bytes")
	ErrVersion  = errors.New("maxQD shim: version is not 1")
	ErrReserved = errors.New("maxQD shim: reserved bits are not zero")
)

// Shim is the header between UDP and what it carries:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-+-----+---------------+-------------------------------+
//	|Version|E|  0  |  Next header  |             maxQD             |
//	+-------+-+-----+---------------+-------------------------------+
type Shim struct {
	// Echo says that the packet carries a value back to the sender; switches do not change it.
	Echo bool
	Next NextHeader
	// MaxQD is the largest queueing delay so far, in the fabric's Unit, 65535 for that
	// and anything longer.
	MaxQD uint16
}

// Decode reads a shim from the first bytes of b.
func (s *Shim) Decode(b []byte) error {
	switch {
	case len(b) < Len:
		return ErrShort
	case b[0]>>4 != Version:
		return ErrVersion
	case b[0]&0x7 != 0:
		return ErrReserved
	}
	s.Echo = b[0]&0x8 != 0
	s.Next = NextHeader(b[1])
	s.MaxQD = binary.BigEndian.Uint16(b[2:])
	return nil
}

// Append appends the shim's wire form to b.
func (s Shim) Append(b []byte) []byte {
	first := byte(Version << 4)
	if s.Echo {
		first |= 0x8
	}
	return append(b, first, byte(s.Next), byte(s.MaxQD>>8), byte(s.MaxQD))
}

// Stamp does the operation of a hop's egress: it raises maxQD to own if own is larger. It does not touch
// echoes.
func (s *Shim) Stamp(own uint16) {
	if !s.Echo && own > s.MaxQD {
		s.MaxQD = own
	}
}

// Unit is the time of one step of a maxQD field. All switches and hosts of a fabric have the same. The zero
// value is not a unit.
type Unit struct{ t units.Time }

// NewUnit returns the unit of a fabric; t is positive.
func NewUnit(t units.Time) (Unit, error) {
	if t <= 0 || t > units.Second {
		return Unit{}, fmt.Errorf("maxQD unit %v: want more than 0 and at most 1s", t)
	}
	return Unit{t}, nil
}

// Time returns the unit as a time.
func (u Unit) Time() units.Time { return u.t }

// Encode converts a delay to a maxQD value. It rounds down, as the pipeline's shift does,
// and saturates at 65535; a negative delay is none.
func (u Unit) Encode(t units.Time) uint16 {
	if t <= 0 {
		return 0
	}
	return uint16(min(t/u.t, math.MaxUint16))
}

// Decode converts a maxQD value to the delay it stands for.
func (u Unit) Decode(v uint16) units.Time { return units.Time(v) * u.t }

// The TCP option that carries maxQD. Its kind is experimental (RFC 4727 §3.1), and the experiment
// has an identifier behind the kind and the length (RFC 6994 §3).
const (
	OptionKind = 254
	OptionExID = 0x4847
	// OptionLen is the length of an Option in bytes.
	OptionLen = 8
	// OfferLen is the length in bytes of the option in SYN and SYN-ACK, which carries no values.
	OfferLen = 4
)

// Option is the TCP option of each segment after the handshake:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------------------------------+
//	|  Kind = 254   |  Length = 8   |         ExID = 0x4847         |
//	+---------------+---------------+-------------------------------+
//	|             maxQD             |             echo              |
//	+-------------------------------+-------------------------------+
type Option struct {
	// MaxQD is the largest queueing delay of the segment so far, in the fabric's Unit, 65535 for
	// that and anything longer. The sender writes 0.
	MaxQD uint16
	// Echo is the maxQD that the sender received last. Switches leave it.
	Echo uint16
}
