package sim

import (
	"math"

	"github.com/headgate/headgate/sim/event"
	"github.com/headgate/headgate/units"
)

// eventQueue holds the pending events of a partition. Its owner sees one queue in the order (time, kind,
// argument). Inside, an event whose delay is one of a few constants waits in a FIFO, and any other in a heap.
type eventQueue struct {
	heap  event.Queue
	fifos fifoQueues
}

// schedule adds an event without a packet.
func (q *eventQueue) schedule(at units.Time, kind uint32, arg int32) { q.heap.Schedule(at, kind, arg) }

// first returns the earliest event, or Never at MaxTime for none.
func (q *eventQueue) first() event.Event {
	if e := q.heap.First(); e.Before(q.fifos.next) {
		return e
	}
	return q.fifos.next
}

// next takes the earliest event, with its packet if it waited in a FIFO. Its kind is Never if no event is due by
// until. The packet is valid until the next call.
func (q *eventQueue) next(until units.Time) (event.Event, *packet) {
	e := q.fifos.next
	first := q.heap.First()
	switch heap := first.Before(e); {
	case heap && first.At <= until:
		return q.heap.Take(), nil
	case heap || e.At > until || e.What == event.Never:
		return event.Event{At: until, What: event.Never}, nil
	}
	return e, q.fifos.pop()
}

// fifoQueues hold events whose delay is constant, so that they are added in the order in which they happen. These
// are the arrivals of full frames and of acknowledgements, with their packets, on links of one rate and delay, and
// the ends of their transmission. Nearly all events of a run are of these kinds.
type fifoQueues struct {
	next  event.Event // first event of all FIFOs; Never at MaxTime for none
	fifo  uint32      // number of the FIFO that next is in
	first []first     // first event of each FIFO
	rings []ring
}

// first is the first event of a FIFO. Its key has, from the highest bit on, the time modulo 2^28 ps, the
// event.What and the number of the FIFO. After the present time is subtracted from all keys, the smallest key is
// next.
type first struct {
	key   uint64
	empty uint64 // all ones for an empty FIFO
}

const (
	fifoBits = 4
	keyShift = 32 + fifoBits
	// maxFIFOs bounds the FIFOs of a partition. pop looks at the first event of each.
	maxFIFOs = 1 << fifoBits
	// maxAhead is the longest delay of a FIFO, in ps.
	maxAhead = 1<<(64-keyShift) - 1
)

// ring holds the events of one FIFO. Each event's time is in its packet.
type ring struct {
	slots []xferPacket // length is a power of two
	head  uint32       // modulo the length, like tail
	tail  uint32
	last  units.Time // time of the latest event
	key   uint64     // key of an event of port 0 at time 0
}

// addFIFOs makes the FIFOs and gives ports the numbers of their FIFOs. Links with jitter have none for arrivals,
// because their delay is not constant. Each other partition has FIFOs of its own for the arrivals from it.
func (s *Sim) addFIFOs() {
	type link struct {
		full, ack units.Time
		from      int32 // number of the sending partition plus 1, 0 for this partition
	}
	arrivals, sent := map[link]uint8{}, map[link]uint8{}
	var kinds []uint32
	add := func(to map[link]uint8, l link, kind uint32) uint8 {
		if to[l] == 0 && len(kinds)+2 <= maxFIFOs && max(l.full, l.ack) <= maxAhead {
			kinds = append(kinds, kind, kind)
			to[l] = uint8(len(kinds) - 1)
		}
		return to[l]
	}
	for i := range s.ports {
		p := &s.ports[i]
		l := link{p.txTime(uint16(s.mtu)), p.txTime(uint16(s.ackSize)), 0}
		p.fifos = add(sent, l, evFree)
		if p.jitter > 0 {
			continue
		}
		l.full, l.ack = l.full+p.delay, l.ack+p.delay
		if p.cross {
			l.from = s.partitionOf[p.node] + 1
		}
		p.fifos |= add(arrivals, l, evArrive) << 4
	}
	for _, p := range s.partitions {
		p.events.fifos = fifoQueues{next: event.Event{At: units.MaxTime, What: event.Never}, first: make([]first, (len(kinds)+3)/4*4), rings: make([]ring, len(kinds))}
		q := &p.events.fifos
		for i := range q.first {
			q.first[i].empty = math.MaxUint64
		}
		for i, kind := range kinds {
			q.rings[i] = ring{slots: make([]xferPacket, 64), key: uint64(event.New(kind, 0))<<fifoBits | uint64(i)}
		}
	}
}

// fifoFor returns the FIFO for a packet of a size, or a negative number for none. full is the number of the FIFO
// of full frames plus 1.
func (s *Sim) fifoFor(full uint8, size uint16) int {
	switch {
	case full == 0:
	case int32(size) == s.mtu:
		return int(full) - 1
	case units.Bytes(size) == s.ackSize:
		return int(full)
	}
	return -1
}

// push adds an event of a port to a FIFO, with its packet. No event in the FIFO may be later.
func (l *fifoQueues) push(fifo int, at units.Time, port int32, e *packet) {
	r := &l.rings[fifo]
	if int(r.tail-r.head)+1 >= len(r.slots) { // the packet taken last also keeps its slot
		r.grow()
	}
	slots := r.slots
	mask := uint32(len(slots) - 1)
	i := r.tail
	r.tail++
	if at == r.last {
		// Events of one time happen in the order of their ports.
		for ; i != r.head; i-- {
			before := &slots[(i-1)&mask]
			if before.port < port || before.due(at) != at {
				break
			}
			slots[i&mask] = *before
		}
	}
	r.last = at
	to := &slots[i&mask]
	to.become(e.on(at), e)
	to.route++
	to.port = port
	if i == r.head {
		l.starts(fifo, at, r.key|uint64(port)<<fifoBits)
	}
}

// starts records the first event of a FIFO. key does not contain the time.
func (l *fifoQueues) starts(fifo int, at units.Time, key uint64) {
	l.first[fifo] = first{key: key | uint64(at)<<keyShift}
	if what := event.What(key >> fifoBits); at < l.next.At || at == l.next.At && what < l.next.What {
		l.next.At, l.next.What, l.fifo = at, what, uint32(fifo)
	}
}

// pop takes the next event. Its packet stays where it is until the next pop.
func (l *fifoQueues) pop() *packet {
	r, f := &l.rings[l.fifo], &l.first[l.fifo]
	slots := r.slots
	mask := uint32(len(slots) - 1)
	head := r.head
	r.head++
	if head+1 == r.tail {
		f.empty = math.MaxUint64
	} else {
		m := &slots[(head+1)&mask]
		f.key = r.key | m.what>>whatShift<<keyShift | uint64(m.port)<<fifoBits
	}
	least, now := uint64(math.MaxUint64), uint64(l.next.At)<<keyShift
	for f := l.first; len(f) >= 4; f = f[4:] {
		least = min(least, min(f[0].key-now|f[0].empty, f[1].key-now|f[1].empty), min(f[2].key-now|f[2].empty, f[3].key-now|f[3].empty))
	}
	if least == math.MaxUint64 {
		l.next.At, l.next.What = units.MaxTime, event.Never
	} else {
		l.next.At += units.Time(least >> keyShift)
		l.next.What, l.fifo = event.What(least>>fifoBits), uint32(least%maxFIFOs)
	}
	return &slots[head&mask].packet
}

func (r *ring) grow() {
	old := r.slots
	r.slots = make([]xferPacket, 2*len(old))
	for i := r.head; i != r.tail; i++ {
		r.slots[i&uint32(len(r.slots)-1)] = old[i&uint32(len(old)-1)]
	}
}

// each calls fn for each packet in a FIFO of arrivals.
func (l *fifoQueues) each(fn func(*packet)) {
	for i := range l.rings {
		r := &l.rings[i]
		for k := r.head; k != r.tail && event.What(r.key>>fifoBits).Kind() == evArrive; k++ {
			fn(&r.slots[k&uint32(len(r.slots)-1)].packet)
		}
	}
}
