// Package pollreport decodes the poll report of the pipeline: the registers of one port,
// which the port's egress writes into a poll and sends to the controller (headers
// poll_report_t, buffer_report_t and estimate_report_t of p4src/shared/headers.p4). The
// report says itself what of them is in it: on Tofino the account of the buffer is the
// traffic manager's.
package pollreport

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/headgate/headgate/p4src/ids"
)

// Size is the length of a report with its account of the buffer, in bytes; what follows it
// is the poll's own payload.
const Size = portSize + bufferSize

// portSize is the length of the header poll_report_t.
const portSize = 58

// The layouts, which the first seven bits of a report name.
const (
	withBuffer   = ids.ReportBuffer   // buffer_report_t follows poll_report_t
	portOnly     = ids.ReportAlone    // nothing does
	withEstimate = ids.ReportEstimate // estimate_report_t does
)

var (
	// ErrShort says that a packet-in ends inside the report.
	ErrShort = errors.New("poll report too short")
	// ErrLayout says that a report is of a program that this package does not know.
	ErrLayout = errors.New("poll report of an unknown layout")
)

// Report is what one port's registers held. Counts run from the start of the switch and
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
// Behind it is, with layout 0, the buffer as the port's ingress queues see it, with layout 3
// DSH's estimate, and with layout 1 nothing.
type Report struct {
	Port            uint32 // 0 … 511
	LastDelay       uint16 // of the last packet that left, in maxQD units, saturating
	Time            uint64 // 48 bits, ticks of the target's clock: 1 µs on BMv2, 1 ns on Tofino
	DepartedBytes   uint64 // 48 bits
	DepartedPackets uint64 // 48 bits
	AdmissionDrops  uint32
	QueueBytes      [ids.QueuesPerPort]uint32
	Buffer          Buffer    // zero without layout 0
	PortOnly        bool      // any other layout
	Estimate        *Estimate // nil without layout 3
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
		case withEstimate:
			r.PortOnly, r.Estimate, size = true, &Estimate{}, portSize+estimateSize
		default:
			return Report{}, nil, fmt.Errorf("%w: %d, want %d, %d or %d", ErrLayout, layout, withBuffer, portOnly, withEstimate)
		}
	}
	if len(payload) < size {
		return Report{}, nil, fmt.Errorf("%w: %d bytes, want at least %d", ErrShort, len(payload), size)
	}
	be := binary.BigEndian
	r.Port = uint32(be.Uint16(payload) & 0x1ff)
	r.LastDelay = be.Uint16(payload[2:])
	r.Time = uint48(payload[4:])
	r.DepartedBytes = uint48(payload[10:])
	r.DepartedPackets = uint48(payload[16:])
	r.AdmissionDrops = be.Uint32(payload[22:])
	for i := range r.QueueBytes {
		r.QueueBytes[i] = be.Uint32(payload[26+4*i:])
	}
	switch {
	case r.Estimate != nil:
		r.Estimate.parse(payload[portSize:])
	case !r.PortOnly:
		r.Buffer.parse(payload[portSize:])
	}
	return r, payload[size:], nil
}

// Append encodes a report behind b, as the pipeline does; higher bits than a field has are
// cut off.
func (r Report) Append(b []byte) []byte {
	be := binary.BigEndian
	layout := uint16(withBuffer)
	switch {
	case r.Estimate != nil:
		layout = withEstimate
	case r.PortOnly:
		layout = portOnly
	}
	b = be.AppendUint16(b, layout<<9|uint16(r.Port&0x1ff))
	b = be.AppendUint16(b, r.LastDelay)
	for _, v := range []uint64{r.Time, r.DepartedBytes, r.DepartedPackets} {
		b = be.AppendUint16(b, uint16(v>>32))
		b = be.AppendUint32(b, uint32(v))
	}
	b = be.AppendUint32(b, r.AdmissionDrops)
	for _, v := range r.QueueBytes {
		b = be.AppendUint32(b, v)
	}
	switch {
	case r.Estimate != nil:
		return r.Estimate.append(b)
	case r.PortOnly:
		return b
	}
	return r.Buffer.append(b)
}

func uint48(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

// bufferSize is the length of the header buffer_report_t of p4src/shared/headers.p4.
const bufferSize = 2 + 6 + 2*4 + 3*4*ids.QueuesPerPort + 2*4*4

// Buffer is what the ingress queues of a port held of the packet buffer, and the switch as
// a whole. Amounts are in bytes; classes are indices.
type Buffer struct {
	Victim       bool   // by SPFC
	PortPaused   bool   // as a whole, by DSH
	PausedQueues uint8  // bit n for class n
	LastPause    uint64 // 48 bits, ticks: when the peer was last told of all that is paused
	PortShared   uint32 // of the lossless classes
	Insured      uint32 // what of it is the port's insurance
	Private      [ids.QueuesPerPort]uint32
	Shared       [ids.QueuesPerPort]uint32 // with DSH, what is insured too
	Headroom     [ids.QueuesPerPort]uint32
	Used, Peak   Pools // of the switch, now and at most since its start
}

// Pools is how much of each pool is in use. Shared is without what is insured.
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

// words lists the fields of 32 bits, in order.
func (b *Buffer) words(visit func(*uint32)) {
	visit(&b.PortShared)
	visit(&b.Insured)
	for _, list := range []*[ids.QueuesPerPort]uint32{&b.Private, &b.Shared, &b.Headroom} {
		for i := range list {
			visit(&list[i])
		}
	}
	for _, p := range []*Pools{&b.Used, &b.Peak} {
		visit(&p.Private)
		visit(&p.Shared)
		visit(&p.Headroom)
		visit(&p.Insurance)
	}
}

// parse decodes bufferSize bytes.
func (b *Buffer) parse(p []byte) {
	b.Victim, b.PortPaused, b.PausedQueues, b.LastPause = p[0]&2 != 0, p[0]&1 != 0, p[1], uint48(p[2:])
	p = p[8:]
	b.words(func(v *uint32) {
		*v = binary.BigEndian.Uint32(p)
		p = p[4:]
	})
}

func (b *Buffer) append(p []byte) []byte {
	var state byte
	if b.PortPaused {
		state = 1
	}
	if b.Victim {
		state |= 2
	}
	p = append(p, state, b.PausedQueues)
	p = binary.BigEndian.AppendUint16(p, uint16(b.LastPause>>32))
	p = binary.BigEndian.AppendUint32(p, uint32(b.LastPause))
	b.words(func(v *uint32) { p = binary.BigEndian.AppendUint32(p, *v) })
	return p
}

// estimateSize is the length of the header estimate_report_t of p4src/shared/headers.p4.
const estimateSize = 2 + 3*4

// Estimate is DSH's estimate (DSH §IV-C, Algorithm 3) of one egress queue, as of the last
// pair of its packets. Gradients are in bytes per 2^12 ns. All are 0 while the chip's
// tables are empty. Every other packet is left out, so Headroom can be far below what
// Algorithm 3 has (see package tables/estimate): it is for looking at, not a safe headroom.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------+-----+---------------+-------------------------------+
//	|    0    |queue|    profile    |        g_avg (32)             |
//	+---------+-----+---------------+-------------------------------+
//	|                               |        ĝ (32)                 |
//	+-------------------------------+-------------------------------+
//	|                               |        φ̂ in bytes (32)        |
//	+-------------------------------+-------------------------------+
//	|                               |
//	+-------------------------------+
type Estimate struct {
	Queue    uint8  // 0 … 7: the one that the poll asked about
	Profile  uint8  // of the port's link: which thresholds Headroom is from
	Average  int32  // g_avg
	Gradient int32  // ĝ
	Headroom uint32 // φ̂ in bytes, 0 … Φ: by how much the queue is estimated to grow until a PAUSE takes effect
}

// parse decodes estimateSize bytes.
func (e *Estimate) parse(p []byte) {
	be := binary.BigEndian
	e.Queue, e.Profile = p[0]%ids.QueuesPerPort, p[1]
	e.Average, e.Gradient, e.Headroom = int32(be.Uint32(p[2:])), int32(be.Uint32(p[6:])), be.Uint32(p[10:])
}

func (e *Estimate) append(p []byte) []byte {
	be := binary.BigEndian
	p = append(p, e.Queue%ids.QueuesPerPort, e.Profile)
	p = be.AppendUint32(p, uint32(e.Average))
	p = be.AppendUint32(p, uint32(e.Gradient))
	return be.AppendUint32(p, e.Headroom)
}
