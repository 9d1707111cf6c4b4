package engine

import (
	"slices"

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
	order     []*phv.Header // headers that it writes, in the order of the wire
	place     []int         // by header: its place in order from 1 on if patches can be written in place, else 0
	patches   [][]phv.Store // stores of the fields that the program writes, by header
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
			d.order = append(d.order, h)
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
	d.patches, d.place = make([][]phv.Store, len(c.layout.List)), make([]int, len(c.layout.List))
	for i, h := range d.order {
		if c.reference || h.Metadata || h.Type.Slow || slices.Contains(d.order[:i], h) || slices.Contains(d.order[i+1:], h) {
			continue // p4c never writes a header twice
		}
		d.place[h.Index] = i + 1
		list, words := h.Type.Patches(func(word int) bool { return c.written[h.Base+word] })
		for k, w := range words {
			c.used[h.Base+w] = true
			list[k].Word += uint32(h.Base)
		}
		d.patches[h.Index] = list
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
	valid, n := p.W[p.in.prog.layout.Validities:][:len(d.place)], 0
	for _, v := range valid {
		n += int(v)
	}
	last := 0
	for _, k := range p.placed[:p.nPlaced] {
		at := d.place[k.header]
		if at <= last || valid[k.header] == 0 {
			return false
		}
		last = at
	}
	return n == p.nPlaced
}

// rewrite writes all valid headers from their fields.
func (d *deparser) rewrite(p *Packet) {
	size := 0
	for _, h := range d.order {
		if p.IsValid(h) {
			size += p.Length(h)
		}
	}
	at := p.prepend(size)
	p.head = at
	for _, h := range d.order {
		if !p.IsValid(h) {
			continue
		}
		p.vector.Deparse(h, p.buf[at:])
		at += p.Length(h)
	}
}
