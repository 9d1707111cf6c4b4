package sim

import (
	"math"
	"math/bits"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// NumClasses is the number of traffic classes of a port (IEEE 802.1Q priorities).
const NumClasses = 8

// port is one end of a link. Its egress side sends to the peer port; its ingress side receives from
// it. The fields are ordered by cache lines of 64 B: a packet that arrives or is sent uses the first
// line only, a queued packet also the line of its queue.
type port struct {
	freeAt   units.Time // when the packet being sent has left the port
	delay    units.Time // propagation
	txBytes  uint64
	mmu      *headroom.MMU // the node's buffer, if it is one
	wire     list          // packets on their way to this port that have no FIFO
	perByte  int32         // ps that a byte takes at the link's rate; 0 if not a whole number
	node     int32
	peer     int32
	local    uint16 // number of the port at its node
	active   uint8  // classes with packets queued
	ready    uint8  // at a host's port, the classes with flows that may send
	paused   uint8  // classes that PFC stops
	pending  bool   // an evFree event is due at freeAt
	ctrl     bool   // a PFC frame waits, before all classes
	isHost   bool
	down     bool
	special  bool  // jitter, cross or toHost
	observed bool  // there are observers
	fifos    uint8 // FIFOs for full frames that it sends, plus 1: bits 4 to 7 for the arrival, 0 to 3 for the end of sending; 0 for none

	queues [NumClasses]queue

	deficit         [NumClasses]int32
	precedenceLists *precedenceLists // nil unless flows have precedences
	dropped         uint64           // packets that arrived here and that the switch's buffer dropped
	arrives         units.Time       // arrival of the packet that it sent last; used with jitter
	jitter          int32            // largest delay of a frame by jitter, ps
	turn            uint8            // class whose DWRR turn it is
	into            uint16           // partition of the peer, used with cross; reading the peer would cost a cache miss
	cross           bool             // the peer is in another partition
	toHost          bool             // the peer is a host; set only with several partitions

	rate units.Rate
	_    [48]byte
}

// queue is one class of a port.
type queue struct {
	list
	bytes units.Bytes
}

// txTime returns how long a frame lasts on the port's link.
func (p *port) txTime(size uint16) units.Time {
	if p.perByte != 0 {
		return units.Time(size) * units.Time(p.perByte)
	}
	return p.rate.TxTime(units.Bytes(size))
}

// perByteOf returns the time of a byte when it is a whole number of picoseconds, else 0.
func perByteOf(r units.Rate) int32 {
	const second = int64(8 * units.Second)
	if r > 0 && second%int64(r) == 0 && second/int64(r) <= math.MaxInt32 {
		return int32(second / int64(r))
	}
	return 0
}

func bytesOf(size uint16) units.Bytes { return units.Bytes(size) }

// idle reports whether a port could send a packet of a class now.
func (p *port) idle(now units.Time, class uint8) bool {
	return p.freeAt <= now && !p.pending && (p.active&^p.paused)|(p.active|p.paused)&(1<<class) == 0 && !p.ctrl && !p.down
}

// schedulePort sends from port i if it is idle, else when it becomes free.
func (s *partition) schedulePort(i int32) {
	p := &s.ports[i]
	if p.pending {
		return
	}
	if p.freeAt <= s.now {
		s.transmit(i)
		return
	}
	p.pending = true
	s.events.schedule(p.freeAt, evFree, i)
}

// transmit sends the next packet of an idle port, if there is one that may go.
func (s *partition) transmit(i int32) {
	p := &s.ports[i]
	if p.down {
		return
	}
	if p.ctrl {
		p.ctrl = false
		size := uint16(s.pfc.Frame)
		e := &s.pauses[i].frame
		e.what = pack(size, 0, kindPFC)
		s.send(i, p, size, e)
		return
	}
	var e *packet
	for e == nil {
		eligible := (p.active | p.ready) &^ p.paused
		if eligible == 0 {
			return
		}
		class := s.pick(p, eligible)
		if p.active>>class&1 == 0 {
			e = s.pull(p, class)
		} else {
			e = s.dequeue(p, class)
		}
	}
	size := e.size()
	if p.isHost {
		s.send(i, p, size, e)
		return
	}
	in, class := e.in(), e.class()
	if s.reds != nil || e.extra != 0 {
		s.stamp(i, p, e)
	}
	s.send(i, p, size, e)
	// This comes last, because the signals may make other ports send.
	s.release(p, in, class, units.Bytes(size))
}

// send puts a packet on the wire of an idle port.
func (s *partition) send(i int32, p *port, size uint16, e *packet) {
	p.freeAt = s.now + p.txTime(size)
	p.txBytes += uint64(size)
	at := p.freeAt + p.delay
	if p.special {
		s.sendSpecial(p, at, e)
	} else {
		s.deliverLocal(p, size, at, e)
	}
	if (p.active|p.ready)&^p.paused != 0 || p.ctrl {
		p.pending = true
		if fifo := s.fifoFor(p.fifos&0xF, size); fifo >= 0 {
			s.events.fifos.push(fifo, p.freeAt, i, e)
		} else {
			s.events.schedule(p.freeAt, evFree, i)
		}
	}
}

// deliverLocal puts a packet on a link within the partition.
func (s *partition) deliverLocal(p *port, size uint16, at units.Time, e *packet) {
	if fifo := s.fifoFor(p.fifos>>4, size); fifo >= 0 {
		s.events.fifos.push(fifo, at, p.peer, e)
	} else {
		s.appendToLink(p.peer, at, e)
	}
}

// freed sends the next packet of a port that has finished sending a packet.
func (s *partition) freed(i int32) {
	s.ports[i].pending = false
	s.transmit(i)
}

// sendSpecial puts a packet on a link with jitter, to another partition or to a host.
func (s *partition) sendSpecial(p *port, at units.Time, e *packet) {
	if p.jitter != 0 {
		// Frames keep their order.
		p.arrives = max(p.arrives, at+units.Time(s.chances[p.node].jitter.Int64N(int64(p.jitter)+1)))
		at = p.arrives
	}
	if p.toHost && e.kind() == kindLastAck {
		s.endings = append(s.endings, ending{at, s.flows[e.flow].spec.Tag != 0})
	}
	if p.cross {
		s.deliverRemote(p, at, e)
	} else {
		s.deliverLocal(p, e.size(), at, e)
	}
}

// appendToLink puts a packet with a time of arrival on the wire to a port. Jitter does not reorder packets.
func (s *partition) appendToLink(port int32, at units.Time, e *packet) {
	w := &s.ports[port].wire
	if w.head == 0 {
		s.events.schedule(at, evArrive, port)
	}
	to := s.store.push(w, e)
	to.arriving(at)
	to.route++
}

// enqueue adds a packet to the queue of a class of an egress port. in is the number of the packet's ingress port
// at the same node.
func (s *partition) enqueue(p *port, class uint8, e *packet, in int32) {
	if e.extra != 0 {
		s.extras.all[e.extra].since = s.now
	}
	q := &p.queues[class]
	l := &q.list
	if s.ranked {
		l = p.rank(class, s.flows[e.flow].precedence)
	}
	e = s.store.push(l, e)
	e.from(in)
	p.active |= 1 << class
	q.bytes += units.Bytes(e.size())
	if p.observed {
		s.observe(p, class)
	}
}

// dequeue takes the first packet of a class of a port, which must not be empty. The packet stays in
// place until another one leaves a queue or a link.
func (s *partition) dequeue(p *port, class uint8) *packet {
	q := &p.queues[class]
	e := s.store.pop(p.first(class))
	q.bytes -= units.Bytes(e.size())
	if p.observed {
		s.observe(p, class)
	}
	if q.bytes == 0 {
		p.active &^= 1 << class
		p.deficit[class] = 0
	}
	return e
}

// first returns the list that contains the next packet of a class.
func (p *port) first(class uint8) *list {
	if p.precedenceLists != nil {
		return p.precedenceLists.first(class, &p.queues[class].list)
	}
	return &p.queues[class].list
}

// NumPrecedences is the number of precedences that flows of a class can have.
const NumPrecedences = 16

// precedenceLists are the queues of a port for precedences above 0, indexed by precedence − 1.
// Precedence 0 uses the class's own queue.
type precedenceLists [NumClasses][NumPrecedences - 1]list

// rank returns the list for packets of a class and a precedence.
func (p *port) rank(class, precedence uint8) *list {
	if precedence == 0 {
		return &p.queues[class].list
	}
	return &p.precedenceLists[class][precedence-1]
}

// precedences returns how many lists a class of the port has.
func (p *port) precedences() uint8 {
	if p.precedenceLists == nil {
		return 1
	}
	return NumPrecedences
}

// first returns the list of the highest non-empty precedence of a class. own is the list of precedence
// 0.
func (r *precedenceLists) first(class uint8, own *list) *list {
	for i := len(r[class]) - 1; i >= 0; i-- {
		if r[class][i].head != 0 {
			return &r[class][i]
		}
	}
	return own
}

// rank makes queues and hosts serve flows by precedence from now on.
func (s *Sim) rank() {
	if s.ranked {
		return
	}
	s.ranked = true
	for i := range s.ports {
		s.ports[i].precedenceLists = &precedenceLists{}
	}
}

// pick returns the class to send next. At least one class must be eligible. It is the highest strict class, or
// else the class that deficit weighted round robin chooses (Shreedhar and Varghese, SIGCOMM 1995, §3).
func (s *partition) pick(p *port, eligible uint8) uint8 {
	if strict := eligible & s.strict; strict != 0 {
		return uint8(bits.Len8(strict) - 1)
	}
	if eligible&(eligible-1) == 0 {
		return uint8(bits.Len8(eligible) - 1)
	}
	for {
		c := p.turn
		if eligible>>c&1 == 1 {
			size := s.mtu
			if p.active>>c&1 == 1 {
				size = int32(s.store.slots[p.first(c).head].size())
			}
			if p.deficit[c] >= size {
				p.deficit[c] -= size
				return c
			}
		}
		// The next eligible class, cyclically: rotate it down to bit 0.
		c = (c + 1) % NumClasses
		c = (c + uint8(bits.TrailingZeros8(bits.RotateLeft8(eligible, -int(c))))) % NumClasses
		p.turn = c
		p.deficit[c] += s.quantum[c]
	}
}
