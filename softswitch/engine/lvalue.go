package engine

import (
	"math/big"
)

// lvalue is something a number can be assigned to: a field of a header instance (ref), a
// field of a header found at run time (dyn, f), or a register cell (reg, idx).
type lvalue struct {
	ref *fieldRef
	dyn *hexpr
	f   *field
	reg *registerSpec
	idx *dexpr
}

// assign compiles writing src to the target, masked (or saturated) to its width.
func (c *compiler) assign(v *lvalue, src *dexpr) opFn {
	switch {
	case v.ref != nil:
		if v.ref.f == nil {
			c.fail("the validity of header %q cannot be assigned to", v.ref.h.name)
		}
		if v.ref.f.vl {
			c.fail("variable-length field %q cannot be assigned a number", v.ref.f.name)
		}
		return c.assignField(v.ref, src)
	case v.reg != nil:
		return c.writeRegister(v.reg, v.idx, src)
	}
	f := v.f
	c.writesType(v.dyn.typ)
	src = fit(f, src)
	at, w := v.dyn.at, f.word
	if f.bits <= 64 {
		m, mask := src.m, f.mask
		return func(p *Packet) {
			x := m(p)
			if h := at(p); h != nil {
				p.w[h.base+w] = x & mask
			}
		}
	}
	store := wideStore(src, f.words, f.bits)
	return func(p *Packet) {
		if h := at(p); h != nil {
			store(p, p.w[h.base+w:h.base+w+f.words])
		}
	}
}

// writes notes that the program writes a field, so that the deparser must.
func (c *compiler) writes(r fieldRef) {
	if r.f != nil {
		for k := range r.f.words {
			c.written[r.word()+k] = true
		}
	}
}

// writesHeader notes that the program writes whole headers.
func (c *compiler) writesHeader(hs ...*header) {
	for _, h := range hs {
		for i := range h.typ.fields {
			c.writes(fieldRef{h, &h.typ.fields[i]})
		}
	}
}

// writesType notes that the program writes headers of a type that are chosen at run time.
func (c *compiler) writesType(t *headerType) {
	for _, h := range c.layout.headers {
		if h.typ == t {
			c.writesHeader(h)
		}
	}
}

// writesTo notes that the program writes a header.
func (c *compiler) writesTo(h *hexpr) {
	if h.fixed != nil {
		c.writesHeader(h.fixed)
	} else {
		c.writesType(h.typ)
	}
}

// writesUnion notes that the program writes members of a union.
func (c *compiler) writesUnion(t *jsonHeaderUnionType) {
	for _, m := range t.Headers {
		c.writesType(c.layout.types[m[1]])
	}
}

// writesStack notes that the program writes elements of a stack.
func (c *compiler) writesStack(s *stack) {
	if s.unions != nil {
		c.writesUnion(s.utyp)
	}
	c.writesHeader(s.elems...)
}

// fit saturates src for a saturating field.
func fit(f *field, src *dexpr) *dexpr {
	if !f.sat {
		return src
	}
	if f.signed {
		return cast("sat_cast", src, f.bits)
	}
	return cast("usat_cast", src, f.bits)
}

func (c *compiler) assignField(r *fieldRef, src *dexpr) opFn {
	f := r.f
	c.writes(*r)
	src = fit(f, src)
	w := r.word()
	if f.bits > 64 {
		if src.wide != nil && src.wide.f.bits == f.bits {
			from, n := src.wide.word(), f.words
			return func(p *Packet) { copy(p.w[w:w+n], p.w[from:from+n]) }
		}
		store, n := wideStore(src, f.words, f.bits), f.words
		return func(p *Packet) { store(p, p.w[w:w+n]) }
	}
	mask, m := f.mask, src.m
	masked := src.fitsU64() && src.hi.Cmp(new(big.Int).SetUint64(mask)) <= 0
	switch {
	case src.konst != nil:
		k := lowWord(src.konst) & mask
		return func(p *Packet) { p.w[w] = k }
	case src.word >= 0 && masked:
		from := src.word
		return func(p *Packet) { p.w[w] = p.w[from] }
	case src.word >= 0:
		from := src.word
		return func(p *Packet) { p.w[w] = p.w[from] & mask }
	case src.param > 0:
		from := src.param - 1
		return func(p *Packet) { p.w[w] = p.args[from] & mask }
	case masked:
		return func(p *Packet) { p.w[w] = m(p) }
	}
	return func(p *Packet) { p.w[w] = m(p) & mask }
}

// wideStore compiles writing src to words of a target of more than 64 bits. The words
// are computed before the first is written, for src may read the target.
func wideStore(src *dexpr, words, bits int) func(p *Packet, dst []uint64) {
	top := lastMask(bits)
	if l := src.limbs(); l != nil {
		return func(p *Packet, dst []uint64) {
			if cap(p.tmp) < words {
				p.tmp = make([]uint64, words)
			}
			t := p.tmp[:words]
			for k := range t {
				t[k] = l(p, k)
			}
			t[words-1] &= top
			copy(dst, t)
		}
	}
	ex := src.exact()
	return func(p *Packet, dst []uint64) {
		z := p.bigTemp()
		ex(p, z)
		for k := range dst {
			dst[k] = bigLimb(z, k)
		}
		dst[words-1] &= top
		p.bigDone()
	}
}

// assignVL compiles copying a variable-length field.
func (c *compiler) assignVL(dst, src fieldRef) opFn {
	if dst.f == nil || src.f == nil || !dst.f.vl || !src.f.vl {
		c.fail("assign_VL wants two variable-length fields")
	}
	c.writes(dst)
	dw, sw := dst.word(), src.word()
	do, so, room := dst.h.vlOff, src.h.vlOff, dst.h.typ.vlMax
	return func(p *Packet) {
		n := min(int(p.w[sw]/8), room)
		p.w[dw] = uint64(8 * n)
		copy(p.vl[do:do+n], p.vl[so:so+n])
	}
}
