package engine

import (
	"encoding/json"
	"math/big"
)

// Reading fields and parameters as values of expressions.

// loadField compiles reading a field of a header instance.
func (c *compiler) loadField(r fieldRef) *dexpr {
	w := r.word()
	if r.f == nil {
		e := &dexpr{lo: bigZero, hi: big.NewInt(1), m: func(p *Packet) uint64 { return p.w[w] }, word: w}
		if r.h.metadata {
			return constant(big.NewInt(1))
		}
		return e
	}
	f := r.f
	switch {
	case f.vl:
		return loadVL(r)
	case f.bits <= 64 && !f.signed:
		return &dexpr{lo: bigZero, hi: new(big.Int).SetUint64(f.mask), m: func(p *Packet) uint64 { return p.w[w] }, word: w}
	case f.bits <= 64:
		sh := uint(64 - f.bits)
		half := pow2(f.bits - 1)
		return &dexpr{
			lo: new(big.Int).Neg(half), hi: new(big.Int).Sub(half, big.NewInt(1)), word: -1,
			m: func(p *Packet) uint64 { return uint64(int64(p.w[w]<<sh) >> sh) },
		}
	}
	e := wideValue(func(p *Packet) []uint64 { return p.w[w : w+f.words] }, f.bits, f.signed)
	e.wide = &r
	return e
}

// wideValue is a value of more than 64 bits whose words at returns.
func wideValue(at func(p *Packet) []uint64, bits int, signed bool) *dexpr {
	words := (bits + 63) / 64
	e := &dexpr{lo: bigZero, hi: new(big.Int).Sub(pow2(bits), big.NewInt(1)), word: -1}
	e.m = func(p *Packet) uint64 { return at(p)[0] }
	if !signed {
		e.limb = func(p *Packet, k int) uint64 {
			if k < words {
				return at(p)[k]
			}
			return 0
		}
	} else {
		half := pow2(bits - 1)
		e.lo, e.hi = new(big.Int).Neg(half), new(big.Int).Sub(half, big.NewInt(1))
		sh := uint(words*64 - bits)
		e.limb = func(p *Packet, k int) uint64 {
			v := at(p)
			if k < words-1 {
				return v[k]
			}
			top := int64(v[words-1]<<sh) >> sh
			if k == words-1 {
				return uint64(top)
			}
			return uint64(top >> 63)
		}
	}
	e.big = bigFromLimbs(e.limb, words, signed)
	return e
}

// bigFromLimbs makes the slow path of a value that has a limb function.
func bigFromLimbs(limb limbFn, words int, signed bool) bigFn {
	return func(p *Packet, z *big.Int) {
		t := p.bigTemp()
		z.SetUint64(0)
		for k := words - 1; k >= 0; k-- {
			z.Lsh(z, 64)
			z.Or(z, t.SetUint64(limb(p, k)))
		}
		if signed && int64(limb(p, words-1)) < 0 {
			t.SetUint64(1)
			z.Sub(z, t.Lsh(t, uint(64*words)))
		}
		p.bigDone()
	}
}

// loadVL reads a variable-length field as a number.
func loadVL(r fieldRef) *dexpr {
	lenWord, off, room := r.word(), r.h.vlOff, r.h.typ.vlMax
	e := &dexpr{lo: bigZero, hi: new(big.Int).Sub(pow2(8*room+1), big.NewInt(1)), word: -1}
	e.limb = func(p *Packet, k int) uint64 {
		n := int(p.w[lenWord] / 8)
		var v uint64
		for i := min(8, n-8*k); i > 0; i-- {
			v = v<<8 | uint64(p.vl[off+n-8*k-i])
		}
		return v
	}
	e.m = func(p *Packet) uint64 { return e.limb(p, 0) }
	e.big = bigFromLimbs(e.limb, room/8+1, false)
	return e
}

// loadParam compiles reading parameter i of the action being compiled.
func (c *compiler) loadParam(i int) *dexpr {
	if c.action == nil {
		c.fail("action parameter %d used outside of an action", i)
	}
	if i < 0 || i >= len(c.action.params) {
		c.fail("action %q has no parameter %d, it has %d", c.action.name, i, len(c.action.params))
	}
	prm := c.action.params[i]
	w, n := prm.word, prm.words
	if prm.bits <= 64 {
		return &dexpr{lo: bigZero, hi: new(big.Int).Sub(pow2(prm.bits), big.NewInt(1)), word: -1, param: w + 1,
			m: func(p *Packet) uint64 { return p.args[w] }}
	}
	return wideValue(func(p *Packet) []uint64 { return p.args[w : w+n] }, prm.bits, false)
}

// lastField compiles [stack, field]: the field of the last extracted element.
func (c *compiler) lastField(raw json.RawMessage) expr {
	var v [2]string
	c.decode(raw, &v)
	s := c.stackNamed(v[0])
	i, ok := s.typ.byName[v[1]]
	if !ok {
		c.fail("header stack %q has no field %q", v[0], v[1])
	}
	last := &hexpr{typ: s.typ, at: func(p *Packet) *header {
		if n := p.w[s.next]; n > 0 {
			return s.elems[n-1]
		}
		return nil
	}}
	return c.accessField(last, i)
}

// accessField compiles field i of a header found at run time.
func (c *compiler) accessField(h *hexpr, i int) expr {
	if i == len(h.typ.fields) { // the hidden field
		return expr{kind: xData, data: boolData(validity(h))}
	}
	if i < 0 || i > len(h.typ.fields) {
		c.fail("header type %q has no field %d", h.typ.name, i)
	}
	f := &h.typ.fields[i]
	if h.fixed != nil {
		r := fieldRef{h.fixed, f}
		return expr{kind: xData, data: c.loadField(r), lval: &lvalue{ref: &r}}
	}
	lv := &lvalue{dyn: h, f: f}
	if f.vl {
		c.fail("variable-length field %q of a header chosen at run time cannot be used as a number", f.name)
	}
	at, w, n := h.at, f.word, f.words
	if f.bits > 64 {
		zero := make([]uint64, n)
		e := wideValue(func(p *Packet) []uint64 {
			if x := at(p); x != nil {
				return p.w[x.base+w : x.base+w+n]
			}
			return zero
		}, f.bits, f.signed)
		return expr{kind: xData, data: e, lval: lv}
	}
	load := func(p *Packet) uint64 {
		if x := at(p); x != nil {
			return p.w[x.base+w]
		}
		return 0
	}
	e := &dexpr{lo: bigZero, hi: new(big.Int).SetUint64(f.mask), m: load, word: -1}
	if f.signed {
		sh := uint(64 - f.bits)
		half := pow2(f.bits - 1)
		e.lo, e.hi = new(big.Int).Neg(half), new(big.Int).Sub(half, big.NewInt(1))
		e.m = func(p *Packet) uint64 { return uint64(int64(load(p)<<sh) >> sh) }
	}
	return expr{kind: xData, data: e, lval: lv}
}
