package sim

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// kind is the kind of a packet; it fits in three bits.
type kind uint8

const (
	kindData kind = iota
	kindAck
	kindNak
	kindCNP
	kindProbe
	kindProbeAck
	kindPFC
	kindLastAck // an ACK that acknowledges all of its flow
)

// Flags of a packet.
const (
	flagLast = 1 << iota // ends its message
	flagCE               // ECN congestion experienced; an ACK echoes it
	flagPair             // a CNP for all flows from its source to its destination
)

// packet is one frame in the fabric, a value of 24 bytes that is copied from queue to queue. It holds everything that
// a hop needs. The field "what" holds, from the lowest bit on:
//
//	bits 0-2    kind
//	bits 3-5    class
//	bits 6-19   size in bytes
//	bits 20-63  on a link the time of arrival modulo 2^44 ps, in a queue the local number of the ingress port
//
// 2^44 ps are 17.6 s, more than the largest frame takes at the lowest rate and the longest delay that topo allows.
type packet struct {
	what  uint64
	route int32  // index in Sim.routes of its next egress port
	flow  int32  // noFlow for PFC frames
	psn   uint32 // packet sequence number in 24 bits, flags above; of a PFC frame see sendPFC
	extra int32  // index in extras, 0 for none
}

const (
	whatShift = 20
	whatTimes = 1<<(64-whatShift) - 1
	flagShift = transport.PSNBits
	// maxFrame fits in the 14 bits of a size.
	maxFrame = 1<<14 - 1
)

func pack(size uint16, class uint8, kd kind) uint64 {
	return uint64(size)<<6 | uint64(class)<<3 | uint64(kd)
}

func (e *packet) size() uint16 { return uint16(e.what >> 6 & maxFrame) }
func (e *packet) class() uint8 { return uint8(e.what >> 3 & 7) }
func (e *packet) kind() kind   { return kind(e.what & 7) }

// from sets the number of the ingress port, and in returns it.
func (e *packet) from(in int32) {
	e.what = e.what&(1<<whatShift-1) | uint64(uint32(in))<<whatShift
}

func (e *packet) in() int32 { return int32(e.what >> whatShift) }

// arriving sets the time of arrival of a packet on a link.
func (e *packet) arriving(at units.Time) { e.what = e.on(at) }

// on returns what with the time of arrival in its upper bits. The packet must be on a link.
func (e *packet) on(at units.Time) uint64 { return e.what&(1<<whatShift-1) | uint64(at)<<whatShift }

// become sets what and copies all other fields of o to e. It copies field by field, because a
// processor stalls when it copies a struct whose fields were just written.
func (e *packet) become(what uint64, o *packet) {
	e.what, e.route, e.flow, e.psn, e.extra = what, o.route, o.flow, o.psn, o.extra
}

// due returns when a packet on the wire arrives, which is not before now.
func (e *packet) due(now units.Time) units.Time {
	return now + units.Time((e.what>>whatShift-uint64(now))&whatTimes)
}

// number returns the packet sequence number.
func (e *packet) number() uint32 { return e.psn & (1<<flagShift - 1) }

func (e *packet) has(flag uint8) bool { return e.psn>>flagShift&uint32(flag) != 0 }
func (e *packet) set(flag uint8)      { e.psn |= uint32(flag) << flagShift }

// extra has the fields of a packet that only some laws need. An acknowledgement returns its data packet's extra.
type extra struct {
	since units.Time // when the packet entered its present queue
	sent  units.Time // when the data packet left its host
	delay units.Time // time from the sender to the receiver
	maxQD units.Time // largest queueing delay of its hops so far
	tele  int32      // telemetry record, 0 for none
}

// pool owns values that packets refer to by index. Index 0 means none. The values contain no pointers, so the
// garbage collector skips them. A pointer to a value is invalid after the next get.
type pool[T any] struct {
	all  []T
	free []int32
}

func newPool[T any]() pool[T] { return pool[T]{all: make([]T, 1)} }

// get returns the index of a free value. The value still has the content that it had when it was freed.
func (p *pool[T]) get() int32 {
	if n := len(p.free) - 1; n >= 0 {
		i := p.free[n]
		p.free = p.free[:n]
		return i
	}
	var x T
	p.all = append(p.all, x)
	return int32(len(p.all) - 1)
}

func (p *pool[T]) put(i int32) { p.free = append(p.free, i) }

// live returns the number of values in use.
func (p *pool[T]) live() int { return len(p.all) - 1 - len(p.free) }

// maxHops bounds the hops of in-band telemetry. HPCC has five, and the longest path of a fat-tree has five
// switches.
const maxHops = 8

// teleRecord is the telemetry that the switches on a packet's path wrote.
type teleRecord struct {
	hop [maxHops]law.Hop
	n   int32
}

// record adds the telemetry of an egress port that starts to send a packet: the bytes queued behind the packet,
// and the bytes sent before it (HPCC, SIGCOMM 2019, §3.1 and Figure 7).
func (s *partition) record(tele int32, p *port, class uint8) {
	r := &s.tele.all[tele]
	if int(r.n) == len(r.hop) {
		return
	}
	r.hop[r.n] = law.Hop{
		Rate: p.rate, Time: s.now, TxBytes: units.Bytes(p.txBytes), Queue: p.queues[class].bytes,
	}
	r.n++
}
