package engine

// deparser is the compiled deparser.
//
// Most packets leave with the headers they came with. Their bytes still stand in front of
// the payload then, one behind the other, so that only fields which the program writes
// somewhere have to be put there. A packet whose headers differ is written as a whole.
type deparser struct {
	checksums []*checksum // that are updated before the headers are written
	late      []*checksum // of whole headers, updated in their bytes
	prims     opFn
	order     []emission
	at        []int // by header: where it stands in the order, of those written in place
}

// emission is a header in the order of the wire.
type emission struct {
	h       *header
	valid   int // of h, as the next three: they are needed for every packet
	index   uint32
	base    int
	words   int
	patches []storeOp // stores of the fields that the program writes
	plain   bool      // of fixed length and shape: patches say all there is to say
}

func (c *compiler) buildDeparser(j *jsonProgram) {
	for i := range j.Deparsers {
		jd := &j.Deparsers[i]
		if jd.Name != "deparser" {
			continue
		}
		c.in("deparsers", i, func() {
			c.deparser = &deparser{}
			for k, name := range jd.Order {
				c.in("order", k, func() {
					h := c.headerNamed(name)
					if h.typ.bits%8 != 0 {
						c.fail("header %q has %d bits, a packet header has whole bytes", name, h.typ.bits)
					}
					c.deparser.order = append(c.deparser.order, emission{h: h, valid: h.valid, index: uint32(h.index), base: h.base, words: h.typ.words})
				})
			}
			if len(jd.Primitives) > 0 {
				c.deparser.prims = c.withRegisters(func() opFn { return c.primitives(jd.Primitives) })
			}
		})
	}
	if c.deparser == nil {
		c.fail("there is no deparser named %q", "deparser")
	}
}

// finishDeparser finds out, when everything else is compiled, what patches are needed.
func (c *compiler) finishDeparser() {
	c.deparser.at = make([]int, len(c.layout.headers))
	seen := map[*header]bool{}
	for i := range c.deparser.order {
		e := &c.deparser.order[i]
		if seen[e.h] {
			c.deparser.order[i].plain = false // no p4c writes a header twice
			continue
		}
		seen[e.h] = true
		e.plain = !e.h.metadata && e.h.typ.vl < 0 && !e.h.typ.codec.slow
		if e.plain {
			var words []int
			e.patches, words = e.h.typ.codec.patches(e.h.typ, func(word int) bool { return c.written[e.h.base+word] })
			for _, w := range words {
				c.used[e.h.base+w] = true
			}
			c.deparser.at[e.index] = i
		}
	}
}

// deparse puts the valid headers in front of the payload.
func (p *Packet) deparse() {
	d := p.in.prog.deparser
	for _, k := range d.checksums {
		k.update(p)
	}
	if d.prims != nil {
		d.prims(p)
	}
	if !d.inPlace(p) {
		p.fill()
		for _, k := range d.late {
			k.update(p)
		}
		d.rewrite(p)
		return
	}
	p.head = p.base
	for i := range p.nPlaced {
		k := &p.placed[i]
		if e := &d.order[d.at[k.header]]; len(e.patches) > 0 {
			storeFields(e.patches, p.w[e.base:e.base+e.words], p.buf[k.at:])
		}
	}
	for _, k := range d.late {
		k.updateBytes(p)
	}
}

// inPlace reports whether the valid headers are those that were extracted, in order.
func (d *deparser) inPlace(p *Packet) bool {
	if p.nPlaced < 0 {
		return false
	}
	n := 0
	for i := range d.order {
		e := &d.order[i]
		if p.w[e.valid] == 0 && !e.h.metadata {
			continue
		}
		if n >= p.nPlaced || p.placed[n].header != e.index || !e.plain {
			return false
		}
		n++
	}
	return n == p.nPlaced
}

// rewrite writes all valid headers.
func (d *deparser) rewrite(p *Packet) {
	size := 0
	for i := range d.order {
		if h := d.order[i].h; p.isValid(h) {
			size += p.bytesOf(h)
		}
	}
	at := p.prepend(size)
	p.head = at
	for i := range d.order {
		h := d.order[i].h
		if !p.isValid(h) {
			continue
		}
		if h.typ.vl >= 0 {
			p.deparseVL(h, at)
		} else {
			h.typ.codec.deparse(p.w[h.base:h.base+h.typ.words], p.buf[at:])
		}
		at += p.bytesOf(h)
	}
}

func (p *Packet) deparseVL(h *header, at int) {
	bit := 0
	b := p.buf[at:]
	for i := range h.typ.fields {
		f := &h.typ.fields[i]
		if !f.vl {
			writeField(b, bit, p.w[h.base+f.word:h.base+f.word+f.words], f.bits)
			bit += f.bits
			continue
		}
		n := int(p.w[h.base+f.word] / 8)
		for k := range n {
			writeBits(b, bit+8*k, uint64(p.vl[h.vlOff+k]), 8)
		}
		bit += 8 * n
	}
}
