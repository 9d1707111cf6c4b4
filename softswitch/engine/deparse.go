package engine

import (
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/softswitch/stages"
)

// deparser is the compiled deparser.
//
// Most packets leave with the headers they came with. The bytes of these headers are still in
// front of the payload, so only the fields that the program writes are stored there. All other
// packets are written from their fields.
type deparser struct {
	name      string
	checksums []*checksum // updated in the fields, before the headers are written
	late      []*checksum // updated in the bytes of their headers
	prims     func(p *Packet)
	order     []emission
	patches   [][]phv.Store // stores of the fields that the program writes, by header
}

// emission is one header that the deparser writes, in the order of the wire.
type emission struct {
	h     *phv.Header
	valid int // valid and plain are copies of h's attributes, for speed
	index uint32
	plain bool // the header has a fixed length, so patches can be written in place
}

func (c *compiler) buildDeparsers(j *bmv2json.Program) {
	for k := range c.passes {
		if i := block(c, "deparser", c.arch.Passes[k].Deparser, j.Deparsers); i >= 0 {
			c.In("deparsers", i, func() { c.passes[k].deparser = c.buildDeparser(&j.Deparsers[i]) })
		}
	}
}

func (c *compiler) buildDeparser(j *bmv2json.Deparser) *deparser {
	d := &deparser{name: j.Name}
	for k, name := range j.Order {
		c.In("order", k, func() {
			h := c.headerNamed(name)
			if h.Type.Bits%8 != 0 {
				c.Fail("header %q has %d bits, a packet header has whole bytes", name, h.Type.Bits)
			}
			d.order = append(d.order, emission{h: h, valid: h.Valid, index: uint32(h.Index)})
		})
	}
	if len(j.Primitives) == 0 {
		return d
	}
	act := &action{}
	act.lock = c.locking(func() { act.body = c.primitives(j.Primitives) })
	pc := c.fragment(func(a *assembler) { a.body(act) })
	d.prims = func(p *Packet) { p.exec(pc) }
	return d
}

// finishDeparsers computes the patches of each header. It runs when the fields that the program
// writes are known.
func (c *compiler) finishDeparsers() {
	for i := range c.passes {
		if d := c.passes[i].deparser; d != nil {
			c.finishDeparser(d)
		}
	}
}

func (c *compiler) finishDeparser(d *deparser) {
	d.patches = make([][]phv.Store, len(c.layout.List))
	seen := map[*phv.Header]bool{}
	for i := range d.order {
		e := &d.order[i]
		if seen[e.h] || c.reference {
			continue // a header is written twice, which p4c never does
		}
		seen[e.h] = true
		if e.plain = !e.h.Metadata && !e.h.Type.Slow; !e.plain {
			continue
		}
		list, words := e.h.Type.Patches(func(word int) bool { return c.written[e.h.Base+word] })
		for k, w := range words {
			c.used[e.h.Base+w] = true
			list[k].Word += uint32(e.h.Base)
		}
		d.patches[e.index] = list
	}
}

// finishHeaders decides which fields extraction loads and which it leaves in the frame. It runs
// last, when the fields that the program reads are known.
func (c *compiler) finishHeaders() {
	c.unloaded = make([][]phv.Load, len(c.layout.List))
	for _, s := range c.extracts {
		for _, o := range s.h.Type.Loads {
			if o.Word += uint32(s.h.Base); c.reference || c.chosen[s.h] || c.used[int(o.Word)] {
				s.loads = append(s.loads, o)
			}
		}
	}
	for _, h := range c.layout.List {
		if h.Type.Slow || c.chosen[h] || c.reference {
			continue
		}
		for _, o := range h.Type.Loads {
			if o.Word += uint32(h.Base); !c.used[int(o.Word)] {
				c.unloaded[h.Index] = append(c.unloaded[h.Index], o)
			}
		}
	}
}

// forgetPlaces drops the places of headers in the frame, because the headers are about to change.
// It first loads the fields that extraction left in the frame.
func (p *Packet) forgetPlaces() {
	p.loadRest()
	p.nPlaced = -1
}

// loadRest loads the fields that extraction left in the frame.
func (p *Packet) loadRest() {
	for i := range max(0, p.nPlaced) {
		k := &p.placed[i]
		phv.LoadFields(p.in.prog.unloaded[k.header], p.W, p.buf[k.at:])
	}
}

// Deparse runs the deparser of a pass, which writes the valid headers in front of the payload. Rest
// then starts with the headers.
func (p *Packet) Deparse(pass Pass) {
	d := p.in.prog.passes[pass].deparser
	for _, k := range d.checksums {
		k.update(p)
	}
	if d.prims != nil {
		d.prims(p)
	}
	if d.inPlace(p) {
		p.head = p.base
		for i := range p.nPlaced {
			k := &p.placed[i]
			if list := d.patches[k.header]; len(list) > 0 {
				phv.StoreFields(list, p.W, p.buf[k.at:])
			}
		}
		for _, k := range d.late {
			k.updateBytes(p)
		}
	} else {
		p.loadRest()
		for _, k := range d.late {
			k.update(p)
		}
		d.rewrite(p)
	}
	if p.watch != nil {
		p.logHeaders(d)
		p.done(stages.Deparse)
	}
}

// inPlace reports whether the valid headers are exactly the extracted ones, in the same order.
func (d *deparser) inPlace(p *Packet) bool {
	if p.nPlaced < 0 {
		return false
	}
	n, w := 0, p.W
	for i := range d.order {
		e := &d.order[i]
		if w[e.valid] == 0 && (e.plain || !e.h.Metadata) {
			continue
		}
		if n >= p.nPlaced || p.placed[n].header != e.index || !e.plain {
			return false
		}
		n++
	}
	return n == p.nPlaced
}

// rewrite writes all valid headers from their fields.
func (d *deparser) rewrite(p *Packet) {
	size := 0
	for i := range d.order {
		if h := d.order[i].h; p.IsValid(h) {
			size += p.Length(h)
		}
	}
	at := p.prepend(size)
	p.head = at
	for i := range d.order {
		h := d.order[i].h
		if !p.IsValid(h) {
			continue
		}
		p.vector.Deparse(h, p.buf[at:])
		at += p.Length(h)
	}
}
