package pollreport

import (
	"encoding/binary"

	"github.com/headgate/headgate/p4src/ids"
)

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
