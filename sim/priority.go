package sim

import "math/bits"

// NumPrecedences is how many precedences flows of a class can have.
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

// precedenceTails are the last flows of each precedence in a host's lists, 0 for none.
type precedenceTails [NumClasses][NumPrecedences]int32

// rank makes queues and hosts serve flows by precedence from now on.
func (s *Sim) rank() {
	if s.ranked {
		return
	}
	s.ranked = true
	for i := range s.ports {
		s.ports[i].precedenceLists = &precedenceLists{}
	}
	s.readyTails = make([]precedenceTails, len(s.nics))
	for h := range s.nics {
		for c := range s.nics[h].ready {
			if q := &s.nics[h].ready[c]; q.head != 0 {
				s.readyTails[h][c][0] = q.tail // what waits has precedence 0
			}
		}
	}
}

// after returns the entry to insert behind for a precedence, 0 for the head, and makes the new entry
// the last of its precedence.
func (t *precedenceTails) after(class, precedence uint8, entry int32) (before int32) {
	for p := precedence; p < NumPrecedences && before == 0; p++ {
		before = t[class][p]
	}
	t[class][precedence] = entry
	return before
}

// left records that an entry has left the head of the list.
func (t *precedenceTails) left(class, precedence uint8, entry int32) {
	if t[class][precedence] == entry {
		t[class][precedence] = 0
	}
}

// addReadyRanked puts a flow into its host's list behind those of its precedence.
func (s *partition) addReadyRanked(i int32) {
	f := &s.flows[i]
	q := &s.nics[f.src].ready[f.class]
	next := &q.head
	if before := s.readyTails[f.src].after(f.class, f.precedence, i); before != 0 {
		next = &s.flows[before].next
	}
	f.next, *next = *next, i
	if f.next == 0 {
		q.tail = i
	}
	s.ports[s.nicPort(f.src)].ready |= 1 << f.class
}

// pick returns the class to send next among the eligible ones, of which there is at least
// one: the highest strict class, else the class whose turn deficit weighted round robin
// says it is (Shreedhar and Varghese, SIGCOMM 1995, §3).
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
