package engine

import "maps"

// Most fields of most headers are named nowhere in a program but in the header's type. They
// stay in the frame: extraction loads only the others, and a packet that leaves with the
// headers it came with never has them anywhere else. Where a header is written from its
// fields, or its place in the frame is about to be forgotten, fill loads the rest.

// uses notes that the program reads a field.
func (c *compiler) uses(r fieldRef) {
	if r.f != nil && !c.writing {
		for k := range r.f.words {
			c.used[r.word()+k] = true
		}
	}
}

// unread compiles something of which no field is read.
func (c *compiler) unread(compile func()) {
	outer := c.writing
	c.writing = true
	compile()
	c.writing = outer
}

// manyFields is how many fields of a header an action writes at least that makes it anew; one
// that writes fewer, as a router does, had better store just these.
const manyFields = 5

// writesAnew reports whether an action, whose writes are those of c.written, writes most
// fields of a header: one that makes packets, such as a reply. What it writes is stored when
// the packet is written as a whole, so that other packets need not store all that. The
// action begins with forget then.
func (c *compiler) writesAnew() (anew bool) {
	for _, h := range c.layout.headers {
		if h.metadata || c.chosen[h] {
			continue
		}
		n := 0
		for i := range h.typ.fields {
			if c.written[h.base+h.typ.fields[i].word] {
				n++
			}
		}
		if 2*n > len(h.typ.fields) && n >= manyFields {
			anew = true
		}
	}
	if anew {
		maps.DeleteFunc(c.written, func(word int, _ bool) bool { return word >= c.layout.meta })
	}
	return anew
}

// usesHeader notes that the program reads or assigns a header as a whole.
func (c *compiler) usesHeader(h *header) {
	for i := range h.typ.fields {
		c.uses(fieldRef{h, &h.typ.fields[i]})
	}
}

// usesInput notes what a calculation reads.
func (c *compiler) usesInput(k *calculation) {
	for i := range k.input {
		switch in := &k.input[i]; {
		case in.konst != nil:
		case in.f == nil:
			c.usesHeader(in.h)
		default:
			c.uses(*in.f)
		}
	}
}

// finishHeaders sorts the fields of all headers into those that extraction loads and those
// that it leaves, when all else is compiled.
func (c *compiler) finishHeaders() {
	for _, h := range c.layout.headers {
		codec := h.typ.codec
		if codec == nil || codec.slow {
			continue
		}
		for _, o := range codec.loads {
			if c.chosen[h] || c.used[h.base+int(o.word)] {
				h.loads = append(h.loads, o)
			} else {
				h.left = append(h.left, o)
			}
		}
	}
	for _, s := range c.extracts {
		s.loads = s.h.loads
	}
}

// forget is called before the places of headers in the frame are no longer known.
func (p *Packet) forget() {
	p.fill()
	p.nPlaced = -1
}

// fill loads what extraction left.
func (p *Packet) fill() {
	for i := range max(0, p.nPlaced) {
		k := &p.placed[i]
		h := p.in.prog.layout.headers[k.header]
		load(h.left, p.w[h.base:h.base+h.typ.words], p.buf[k.at:])
	}
}
