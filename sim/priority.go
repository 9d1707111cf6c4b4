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
