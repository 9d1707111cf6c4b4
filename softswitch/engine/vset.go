package engine

import (
	"encoding/binary"
	"fmt"
	"math/big"
)

// vsetSpec declares a parser value set; widths are those of the transition key that uses it.
type vsetSpec struct {
	name   string
	index  int
	bits   int
	widths []int
}

// vsetMember is one member of a value set: a condition on every element of the key.
type vsetMember []vsetCond

type vsetCond struct {
	value, mask []uint64 // limbs, least significant first; hi in mask for a range
	ranged      bool
}

// SetValueSet replaces the members of a value set. A member has one Match per element of
// the transition key, or a single one with the exact value of all elements concatenated.
// A Match without Mask and Prefix is exact; with Range it is a range.
func (in *Instance) SetValueSet(name string, members [][]Match) error {
	s := in.prog.vsetBy[name]
	if s == nil {
		return fmt.Errorf("value set %q: %w", name, ErrNotFound)
	}
	list := make([]vsetMember, 0, len(members))
	for _, m := range members {
		v, err := s.member(m)
		if err != nil {
			return fmt.Errorf("value set %q: %w", name, err)
		}
		list = append(list, v)
	}
	in.lock()
	in.vsets[s.index] = list
	in.unlock()
	return nil
}

func (s *vsetSpec) member(ms []Match) (vsetMember, error) {
	widths := s.widths
	if widths == nil {
		widths = []int{s.bits} // no state uses the set
	}
	if len(ms) == 1 && len(widths) > 1 {
		z := new(big.Int).SetBytes(ms[0].Value)
		if z.BitLen() > s.bits || ms[0].Mask != nil || ms[0].Any || ms[0].Prefix != 0 {
			return nil, fmt.Errorf("value %x is not an exact one of %d bits: %w", ms[0].Value, s.bits, ErrInvalid)
		}
		split := make([]Match, len(widths))
		left := s.bits
		for i, w := range widths {
			left -= w
			part := new(big.Int).Rsh(z, uint(left))
			split[i].Value = part.And(part, constMask(w)).Bytes()
		}
		ms = split
	}
	if len(ms) != len(widths) {
		return nil, fmt.Errorf("member has %d fields, want %d: %w", len(ms), len(widths), ErrInvalid)
	}
	v := make(vsetMember, len(ms))
	for i := range ms {
		m, w := &ms[i], widths[i]
		kind := Exact
		switch {
		case m.Range:
			kind = Range
		case m.Mask != nil || m.Any:
			kind = Ternary
		case m.Prefix != 0:
			kind = LPM
		}
		lo, hi, err := matchWords(KeyField{Name: fmt.Sprint("element ", i), Kind: kind, Bits: w}, m)
		if err != nil {
			return nil, err
		}
		v[i] = vsetCond{lo, hi, kind == Range}
	}
	return v, nil
}

// contains reports whether the byte-padded transition key, most significant limb first,
// is in the set, under the mask of the case.
func (s *vsetSpec) contains(p *Packet, key []uint64, st *parseState, k *parseCase) bool {
	members := p.in.vsets[s.index]
	if len(members) == 0 {
		return false
	}
	b := p.kbuf[:0]
	for _, x := range key {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	p.kbuf = b
	b = b[len(b)-st.keyBits/8:]
	words := 0
	for i := range st.key {
		words = max(words, (st.key[i].bits+63)/64)
	}
	if cap(p.wide) < 2*words {
		p.wide = make([]uint64, 2*words)
	}
	val, mask := p.wide[:words], p.wide[words:2*words]
	for _, m := range members {
		off, ok := 0, true
		for i := range m {
			bits := st.key[i].bits
			pad := (bits + 7) / 8 * 8
			n := (bits + 63) / 64
			readField(val[:n], b, off+pad-bits, bits)
			for x := range mask {
				mask[x] = ^uint64(0)
			}
			if len(k.vmask) == len(b) {
				readField(mask[:n], k.vmask, off+pad-bits, bits)
			}
			if !m[i].matches(val[:n], mask[:n]) {
				ok = false
				break
			}
			off += pad
		}
		if ok {
			return true
		}
	}
	return false
}

func (c *vsetCond) matches(v, mask []uint64) bool {
	if c.ranged {
		return cmpWords(v, c.value) >= 0 && cmpWords(v, c.mask) <= 0
	}
	for i := range v {
		if (v[i]^c.value[i])&c.mask[i]&mask[i] != 0 {
			return false
		}
	}
	return true
}

// cmpWords compares numbers given as limbs, least significant first.
func cmpWords(a, b []uint64) int {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			if a[i] < b[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}
