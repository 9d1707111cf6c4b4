// Package pollreport decodes the poll report of the pipeline: the registers of one port, which the port's
// egress writes into a poll and sends to the controller (headers poll_report_t and buffer_report_t of
// p4src/shared/headers.p4). The report's layout says which registers it has: on Tofino the traffic manager
// accounts for the buffer, so the report lacks that part.
package pollreport

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/headgate/headgate/p4src/ids"
)

// Size is the length of a report with its account of the buffer, in bytes. The poll's own payload follows.
const Size = portSize + bufferSize

// portSize is the length of the header poll_report_t.
const portSize = 58

// The layouts, which the first seven bits of a report name.
const (
	withBuffer = ids.ReportBuffer // buffer_report_t follows poll_report_t
	portOnly   = ids.ReportAlone  // no header does
)

var (
	// ErrShort says that a packet-in ends inside the report.
	ErrShort = errors.New("poll report too short")
	// ErrLayout says that a report is of a program that this package does not know.
	ErrLayout = errors.New("poll report of an unknown layout")
)

// Report holds one port's registers. Counts run from the start of the switch and
// wrap at their width; a switch that was restarted begins again at 0.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------+-----------------+-------------------------------+
//	|   layout    |      port       |    last queueing delay        |
//	+-------------+-----------------+-------------------------------+
//	|                    time (48, target clock ticks)              |
//	+                               +-------------------------------+
//	|                               |   departed bytes (48)         |
//	+-------------------------------+                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                    departed packets (48)                      |
//	+                               +-------------------------------+
//	|                               |  admission drops (32)         |
//	+-------------------------------+-------------------------------+
//	|                               |  bytes of queue 0 … 7, 32 each|
//
// With layout 0 the use of the buffer by the port's ingress queues follows; with layout 1 nothing follows.
type Report struct {
	Port            uint32 // 0 … 511
	LastDelay       uint16 // delay of the last packet that left, in maxQD units, saturating
	Time            uint64 // 48 bits, ticks of the target's clock: 1 µs on BMv2, 1 ns on Tofino
	DepartedBytes   uint64 // 48 bits
	DepartedPackets uint64 // 48 bits
	AdmissionDrops  uint32
	QueueBytes      [ids.QueuesPerPort]uint32
	Buffer          Buffer // zero without layout 0
	PortOnly        bool   // layout 1
}

// Parse decodes the report at the start of a packet-in's payload. The rest is the payload
// that the poll was sent with, in the same memory.
func Parse(payload []byte) (r Report, rest []byte, err error) {
	size := Size
	if len(payload) > 0 {
		switch layout := payload[0] >> 1; layout {
		case withBuffer:
		case portOnly:
			r.PortOnly, size = true, portSize
		default:
			return Report{}, nil, fmt.Errorf("%w: %d, want %d or %d", ErrLayout, layout, withBuffer, portOnly)
		}
	}
	if len(payload) < size {
		return Report{}, nil, fmt.Errorf("%w: %d bytes, want at least %d", ErrShort, len(payload), size)
	}
	var head uint16
	r.fields(&codec{b: payload}, &head)
	r.Port = uint32(head & 0x1ff)
	return r, payload[size:], nil
}

// Append encodes a report behind b, as the pipeline does; higher bits than a field has are
// cut off.
func (r Report) Append(b []byte) []byte {
	layout := uint16(withBuffer)
	if r.PortOnly {
		layout = portOnly
	}
	c, head := codec{b, true}, layout<<9|uint16(r.Port&0x1ff)
	r.fields(&c, &head)
	return c.b
}

// fields reads or writes the report; head is the layout and the port.
func (r *Report) fields(c *codec, head *uint16) {
	field(c, 2, head)
	field(c, 2, &r.LastDelay)
	field(c, 6, &r.Time)
	field(c, 6, &r.DepartedBytes)
	field(c, 6, &r.DepartedPackets)
	field(c, 4, &r.AdmissionDrops)
	c.words(r.QueueBytes[:])
	if !r.PortOnly {
		r.Buffer.fields(c)
	}
}

// codec reads fields from the front of b, or appends them.
type codec struct {
	b      []byte
	writes bool
}

// field reads or appends a field of size bytes.
func field[T uint8 | uint16 | uint32 | uint64 | int32](c *codec, size int, v *T) {
	var word [8]byte
	if c.writes {
		binary.BigEndian.PutUint64(word[:], uint64(*v))
		c.b = append(c.b, word[8-size:]...)
		return
	}
	copy(word[8-size:], c.b[:size])
	*v, c.b = T(binary.BigEndian.Uint64(word[:])), c.b[size:]
}

// words reads or appends fields of 32 bits.
func (c *codec) words(list []uint32) {
	for i := range list {
		field(c, 4, &list[i])
	}
}

// bufferSize is the length of the header buffer_report_t of p4src/shared/headers.p4.
const bufferSize = 2 + 6 + 2*4 + 3*4*ids.QueuesPerPort + 2*4*4

// Buffer is the use of the packet buffer by the ingress queues of a port, and by the switch as a whole. Amounts
// are in bytes; classes are indices.
type Buffer struct {
	Victim       bool   // the port is a victim under SPFC
	PortPaused   bool   // DSH has paused the port as a whole
	PausedQueues uint8  // bit n for class n
	LastPause    uint64 // 48 bits, ticks: when the peer was last told of all paused classes
	PortShared   uint32 // of the lossless classes
	Insured      uint32 // part in the port's insurance headroom
	Private      [ids.QueuesPerPort]uint32
	Shared       [ids.QueuesPerPort]uint32 // includes insurance headroom under DSH
	Headroom     [ids.QueuesPerPort]uint32
	Used, Peak   Pools // pools of the switch, now and at most since its start
}

// Pools are the bytes in use of each pool. Shared excludes insurance headroom.
type Pools struct {
	Private, Shared, Headroom, Insurance uint32
}

// Paused returns the classes that the port has told its peer to stop.
func (b *Buffer) Paused() uint8 {
	if b.PortPaused {
		return 0xff
	}
	return b.PausedQueues
}

func (b *Buffer) fields(c *codec) {
	var state uint8
	if b.PortPaused {
		state = 1
	}
	if b.Victim {
		state |= 2
	}
	field(c, 1, &state)
	b.PortPaused, b.Victim = state&1 != 0, state&2 != 0
	field(c, 1, &b.PausedQueues)
	field(c, 6, &b.LastPause)
	field(c, 4, &b.PortShared)
	field(c, 4, &b.Insured)
	for _, list := range []*[ids.QueuesPerPort]uint32{&b.Private, &b.Shared, &b.Headroom} {
		c.words(list[:])
	}
	for _, p := range []*Pools{&b.Used, &b.Peak} {
		for _, v := range []*uint32{&p.Private, &p.Shared, &p.Headroom, &p.Insurance} {
			field(c, 4, v)
		}
	}
}
