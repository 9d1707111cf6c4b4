package sim

import (
	"math"

	"github.com/headgate/headgate/sim/event"
	"github.com/headgate/headgate/units"
)

// lanes hold the events that come equally long after what causes them, in the order in which they happen: each is a
// ring that is written and read in order, where the agenda has to search. Full frames and acknowledgements on links
// of one rate and delay make two for arrivals, which carry the packets, and on links of one rate two for when their
// ports have sent them. That is nearly all that happens in a fabric.
type lanes struct {
	next  event.Event // of all lanes; Never at MaxTime for none
	lane  uint32      // of next
	first []first     // of each lane
	rings []ring
}

// first is the first event of a lane. Its key has, from the highest bit on, its time modulo 2^28 ps, what it is and the
// lane, so that the least is next once the present time is taken off.
type first struct {
	key   uint64
	empty uint64 // all ones for a lane without events
}

const (
	laneBits = 4
	keyShift = 32 + laneBits
	// maxLanes is how many a part has at most: which is next is found by looking at each.
	maxLanes = 1 << laneBits
	// maxAhead is how long after its cause an event of a lane is at most.
	maxAhead = 1<<(64-keyShift) - 1
)

// ring is the events of a lane. A packet tells its event's time.
type ring struct {
	slots []parcel // of a power of two
	head  uint32   // modulo that
	tail  uint32
	last  units.Time // when the last event happens
	key   uint64     // of an event of port 0 at time 0
}

// addLanes gives ports their lanes. The frames of a link that is late at random do not all take equally long; those of links
// into other parts have lanes of their own, by the part they are from.
func (s *Sim) addLanes() {
	type link struct {
		full, ack units.Time
		from      int32 // the part, where it is another one, from 1 on
	}
	arrivals, sent := map[link]uint8{}, map[link]uint8{}
	var kinds []uint32
	add := func(to map[link]uint8, l link, kind uint32) uint8 {
		if to[l] == 0 && len(kinds)+2 <= maxLanes && max(l.full, l.ack) <= maxAhead {
			kinds = append(kinds, kind, kind)
			to[l] = uint8(len(kinds) - 1)
		}
		return to[l]
	}
	for i := range s.ports {
		p := &s.ports[i]
		l := link{p.txTime(uint16(s.mtu)), p.txTime(uint16(s.ackSize)), 0}
		p.lanes = add(sent, l, evFree)
		if p.jitter > 0 {
			continue
		}
		l.full, l.ack = l.full+p.delay, l.ack+p.delay
		if p.cross {
			l.from = s.partOf[p.node] + 1
		}
		p.lanes |= add(arrivals, l, evArrive) << 4
	}
	for _, p := range s.parts {
		p.lanes = lanes{next: event.Event{At: units.MaxTime, What: event.Never}, first: make([]first, (len(kinds)+3)/4*4), rings: make([]ring, len(kinds))}
		for i := range p.first {
			p.first[i].empty = math.MaxUint64
		}
		for i, kind := range kinds {
			p.rings[i] = ring{slots: make([]parcel, 64), key: uint64(event.Of(kind, 0))<<laneBits | uint64(i)}
		}
	}
}

// laneFor returns the lane of a packet of a size, where that of full frames has number full from 1 on; negative for none.
func (s *Sim) laneFor(full uint8, size uint16) int {
	switch {
	case full == 0:
	case int32(size) == s.mtu:
		return int(full) - 1
	case units.Bytes(size) == s.ackSize:
		return int(full)
	}
	return -1
}

// push adds an event of a port to a lane, none of which is later, with a packet that is on its next link.
func (l *lanes) push(lane int, at units.Time, port int32, e *packet) {
	r := &l.rings[lane]
	if int(r.tail-r.head)+1 >= len(r.slots) { // the packet taken last keeps its place, too
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
		l.starts(lane, at, r.key|uint64(port)<<laneBits)
	}
}

// starts notes the first event of a lane, key without its time.
func (l *lanes) starts(lane int, at units.Time, key uint64) {
	l.first[lane] = first{key: key | uint64(at)<<keyShift}
	if what := event.What(key >> laneBits); at < l.next.At || at == l.next.At && what < l.next.What {
		l.next.At, l.next.What, l.lane = at, what, uint32(lane)
	}
}

// pop takes the next event. Its packet stays where it is until the next pop.
func (l *lanes) pop() *packet {
	r, f := &l.rings[l.lane], &l.first[l.lane]
	slots := r.slots
	mask := uint32(len(slots) - 1)
	head := r.head
	r.head++
	if head+1 == r.tail {
		f.empty = math.MaxUint64
	} else {
		m := &slots[(head+1)&mask]
		f.key = r.key | m.what>>whatShift<<keyShift | uint64(m.port)<<laneBits
	}
	least, now := uint64(math.MaxUint64), uint64(l.next.At)<<keyShift
	for f := l.first; len(f) >= 4; f = f[4:] {
		least = min(least, min(f[0].key-now|f[0].empty, f[1].key-now|f[1].empty), min(f[2].key-now|f[2].empty, f[3].key-now|f[3].empty))
	}
	if least == math.MaxUint64 {
		l.next.At, l.next.What = units.MaxTime, event.Never
	} else {
		l.next.At += units.Time(least >> keyShift)
		l.next.What, l.lane = event.What(least>>laneBits), uint32(least%maxLanes)
	}
	return &slots[head&mask].packet
}

func (r *ring) grow() {
	old := r.slots
	r.slots = make([]parcel, 2*len(old))
	for i := r.head; i != r.tail; i++ {
		r.slots[i&uint32(len(r.slots)-1)] = old[i&uint32(len(old)-1)]
	}
}

// each calls fn for each packet that arrives by a lane.
func (l *lanes) each(fn func(*packet)) {
	for i := range l.rings {
		r := &l.rings[i]
		for k := r.head; k != r.tail && event.What(r.key>>laneBits).Kind() == evArrive; k++ {
			fn(&r.slots[k&uint32(len(r.slots)-1)].packet)
		}
	}
}
