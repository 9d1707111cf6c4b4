package engine

import (
	"fmt"
	"math/big"

	"github.com/headgate/headgate/softswitch/engine/match"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// vsetSpec declares a parser value set. widths are the widths of the transition key that uses it.
type vsetSpec struct {
	index  int
	bits   int
	widths []int
}

// vsetMember is one member of a value set. Its value and mask cover the byte-padded transition
// key.
type vsetMember struct {
	value, mask []byte
	ranges      []vsetRange
}

type vsetRange struct {
	bit, bits int
	lo, hi    []uint64
}

// use records the widths of a transition key that uses the set.
func (s *vsetSpec) use(c *compiler, key []keyPart) {
	var widths []int
	sum := 0
	for i := range key {
		widths = append(widths, key[i].bits)
		sum += key[i].bits
	}
	if sum != s.bits {
		c.Fail("value set has %d bits, the transition key %d", s.bits, sum)
	}
	if s.widths == nil {
		s.widths = widths
	}
}

// SetValueSet replaces the members of a value set. A member has one Match per element of
// the transition key, or a single one with the exact value of all elements concatenated.
// A Match without Mask and Prefix is exact; with Range it is a range.
func (in *Instance) SetValueSet(name string, members [][]Match) error {
	s, err := in.prog.vsets.find(name)
	if err != nil {
		return err
	}
	list := make([]vsetMember, len(members))
	for i, m := range members {
		if list[i], err = s.member(m); err != nil {
			return fmt.Errorf("value set %q: %w", name, err)
		}
	}
	in.lock()
	in.vsets[s.index] = list
	in.unlock()
	return nil
}

func (s *vsetSpec) member(ms []Match) (v vsetMember, err error) {
	widths := s.widths
	if widths == nil {
		widths = []int{s.bits} // no state uses the set
	}
	if len(ms) == 1 && len(widths) > 1 {
		z := new(big.Int).SetBytes(ms[0].Value)
		if z.BitLen() > s.bits || ms[0].Mask != nil || ms[0].Any || ms[0].Prefix != 0 {
			return v, fmt.Errorf("value %x is not an exact one of %d bits: %w", ms[0].Value, s.bits, ErrInvalid)
		}
		ms = split(z, s.bits, widths)
	}
	if len(ms) != len(widths) {
		return v, fmt.Errorf("member has %d fields, want %d: %w", len(ms), len(widths), ErrInvalid)
	}
	total := 0
	for _, bits := range widths {
		total += padded(bits)
	}
	v.value, v.mask = make([]byte, total/8), make([]byte, total/8)
	end := 0
	for i := range ms {
		m, bits := &ms[i], widths[i]
		end += padded(bits)
		kind := Exact
		switch {
		case m.Range:
			kind = Range
		case m.Mask != nil || m.Any:
			kind = Ternary
		case m.Prefix != 0:
			kind = LPM
		}
		lo, hi, err := match.Field{Name: fmt.Sprint("element ", i), Kind: kind, Bits: bits}.Words(m)
		if err != nil {
			return v, err
		}
		if kind == Range {
			v.ranges = append(v.ranges, vsetRange{end - bits, bits, lo, hi})
			continue
		}
		phv.WriteField(v.value, end-bits, lo, bits)
		phv.WriteField(v.mask, end-bits, hi, bits)
	}
	return v, nil
}

// split cuts a number into parts of the given widths, the most significant first.
func split(z *big.Int, bits int, widths []int) []Match {
	ms := make([]Match, len(widths))
	for i, w := range widths {
		bits -= w
		words := make([]uint64, phv.Words(w))
		phv.PutWords(words, new(big.Int).Rsh(z, uint(bits)), w)
		ms[i].Value = fieldBytes(words, w)
	}
	return ms
}

// contains reports whether the byte-padded transition key is in the set. mask is the mask of the
// parser's case and does not apply to ranges.
func (s *vsetSpec) contains(p *Packet, key, mask []byte) bool {
	for i := range p.in.vsets[s.index] {
		if p.in.vsets[s.index][i].matches(key, mask) {
			return true
		}
	}
	return false
}

func (v *vsetMember) matches(key, mask []byte) bool {
	if len(v.mask) != len(key) { // the set serves a key with other widths
		return false
	}
	for i := range key {
		if (key[i]^v.value[i])&v.mask[i]&mask[i] != 0 {
			return false
		}
	}
	for _, r := range v.ranges {
		w := make([]uint64, len(r.lo))
		phv.ReadField(w, key, r.bit, r.bits)
		if !match.InRange(w, r.lo, r.hi) {
			return false
		}
	}
	return true
}
