package fabric

import (
	"math"

	"github.com/headgate/headgate/units"
)

// NumClasses is the number of traffic classes of a port (IEEE 802.1Q priorities).
const NumClasses = 8

// port is where a link attaches to a node: its egress side sends to the peer port, its
// ingress side receives what the peer sends. It is laid out in cache lines of 64 B: sending
// touches the first, a queue and the peer's second; receiving the first two.
type port struct {
	freeAt  units.Time // when the packet being sent has left
	delay   units.Time // propagation
	txBytes uint64
	ctrl    fifo  // PFC frames to send, before all classes
	perByte int32 // ps that a byte lasts at the link's rate; 0 when that is not whole
	node    int32
	peer    int32
	active  uint8 // classes with packets queued
	ready   uint8 // of a host's port: classes with flows that may send
	paused  uint8 // classes that PFC stops
	pending bool  // an evFree event is due at freeAt
	isHost  bool
	down    bool
	cross   bool  // the peer is of another part
	toHost  bool  // the peer is a host; kept where there are several parts
	turn    uint8 // class whose DWRR turn it is
	jitter  int32 // ps that a frame is late at most

	observed int32 // index + 1 of its observers, 0 for none

	wire    wire // packets on their way to this port
	rate    units.Rate
	arrives units.Time // with jitter: when the last packet that it sent does
	in      inlet
	_       [8]byte

	queues [NumClasses]queue

	deficit [NumClasses]int32
	tails   *tails // nil unless flows have precedences
	dropped uint64 // packets that came by this port, by its switch's buffer
	_       [16]byte
}

// inlet is what a packet that arrives looks at of a port, so that it needs but one cache line.
type inlet struct {
	node   int32
	local  uint16 // number of the port at its node
	isHost bool
	down   bool // as the port's
}

// queue is what waits in one class of a port.
type queue struct {
	fifo
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

// kick lets port i send if it is idle, or makes sure that it looks again when it is free.
func (s *part) kick(i int32) {
	p := &s.ports[i]
	if p.pending {
		return
	}
	if p.freeAt <= s.now {
		s.transmit(i)
		return
	}
	p.pending = true
	s.agenda.Schedule(p.freeAt, evFree, i)
}

// transmit sends the next packet of an idle port, if there is one that may go.
func (s *part) transmit(i int32) {
	p := &s.ports[i]
	if p.down {
		return
	}
	var k int32
	if p.ctrl.head != 0 {
		k = p.ctrl.pop(s.pool.packets)
		s.send(i, p, s.pool.packets[k].size, pack(k, 0, s.pool.packets[k].size, 0, kindPFC))
		return
	}
	for k == 0 {
		eligible := (p.active | p.ready) &^ p.paused
		if eligible == 0 {
			return
		}
		class := s.pick(p, eligible)
		if p.active>>class&1 == 0 {
			k = s.pull(p, class)
		} else {
			k = s.dequeue(p, class)
		}
	}
	pk := &s.pool.packets[k]
	class, size := pk.class, pk.size
	e := pack(k, pk.route, size, class, pk.kind())
	if p.isHost {
		s.send(i, p, size, e)
		return
	}
	in := pk.in
	s.stamp(i, p, k)
	s.send(i, p, size, e)
	// Last, for the signals may make other ports send.
	s.release(p.node, in, class, units.Bytes(size))
}

// send puts a packet on the wire of an idle port.
func (s *part) send(i int32, p *port, size uint16, e onWire) {
	p.freeAt = s.now + p.txTime(size)
	p.txBytes += uint64(size)
	at := p.freeAt + p.delay
	if p.jitter != 0 {
		// A frame is not before the one ahead of it.
		p.arrives = max(p.arrives, at+units.Time(s.chances[p.node].jitter.Int64N(int64(p.jitter)+1)))
		at = p.arrives
	}
	if p.toHost && e.kind() == kindLastAck {
		s.endings = append(s.endings, ending{at, s.flows[s.pool.packets[e.k].flow].spec.Tag != 0})
	}
	if p.cross {
		s.post(p, at, e)
	} else {
		s.land(&s.ports[p.peer].wire, p.peer, at, e)
	}
	if (p.active|p.ready)&^p.paused != 0 || p.ctrl.head != 0 {
		p.pending = true
		s.agenda.Schedule(p.freeAt, evFree, i)
	}
}

// land puts a packet on the wire to a port.
func (s *part) land(w *wire, port int32, at units.Time, e onWire) {
	if w.n == 0 {
		s.agenda.Schedule(at, evArrive, port)
	}
	if w.full() {
		w.grow()
	}
	w.push(at, e)
}

func (s *part) enqueue(p *port, class uint8, k int32, size uint16) {
	pk := &s.pool.packets[k]
	pk.at = s.now
	q := &p.queues[class]
	if s.ranked {
		s.insert(p, class, k)
	} else {
		pk.next = 0
		if q.head == 0 {
			q.head = k
			p.active |= 1 << class
		} else {
			s.pool.packets[q.tail].next = k
		}
		q.tail = k
	}
	q.bytes += units.Bytes(size)
	if p.observed != 0 {
		s.observe(p, class)
	}
}

func (s *part) dequeue(p *port, class uint8) int32 {
	q := &p.queues[class]
	k := q.head
	pk := &s.pool.packets[k]
	q.head = pk.next
	if s.ranked {
		p.tails.left(class, s.precedence(k), k)
	}
	q.bytes -= units.Bytes(pk.size)
	if p.observed != 0 {
		s.observe(p, class)
	}
	if q.head == 0 {
		p.active &^= 1 << class
		p.deficit[class] = 0
	} else {
		// Have the next packet on its way from memory before its turn comes.
		s.touched += s.pool.packets[q.head].size
	}
	return k
}
