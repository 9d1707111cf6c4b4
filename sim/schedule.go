package sim

import "math/bits"

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
