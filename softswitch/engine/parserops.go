package engine

import (
	"encoding/json"
	"math/big"
)

// parserOp compiles one operation of a parse state.
func (c *compiler) parserOp(j *jsonParserOp) parseOp {
	arity := map[string]int{"extract": 1, "extract_VL": 2, "set": 2, "verify": 2, "shift": 1, "advance": 1, "primitive": 1}
	n, ok := arity[j.Op]
	if !ok {
		c.fail("unknown parser op %q", j.Op)
	}
	if n != len(j.Parameters) {
		c.fail("parser op %q has %d parameters, want %d", j.Op, len(j.Parameters), n)
	}
	switch j.Op {
	case "extract", "extract_VL":
		return c.extractOp(j)
	case "set":
		return c.setOp(j)
	case "verify":
		return c.verifyOp(j)
	case "shift":
		bytes := c.integer(j.Parameters[0])
		if bytes < 0 {
			c.fail("shift by %d bytes", bytes)
		}
		return advance(func(*Packet) uint64 { return 8 * uint64(bytes) })
	case "advance":
		var v jsonValue
		c.decode(j.Parameters[0], &v)
		e := c.want(c.expression(&v), xData).data
		m := e.m
		if !e.fitsU64() {
			at := index(e, 1<<30) // a negative distance is beyond any packet too
			m = func(p *Packet) uint64 {
				if i := at(p); i >= 0 {
					return uint64(i)
				}
				return 1 << 40
			}
		}
		return advance(m)
	}
	var prim jsonPrimitive
	c.decode(j.Parameters[0], &prim)
	f := c.primitive(&prim)
	return func(p *Packet) bool { f(p); return true }
}

// advance skips bits; BMv2 skips whole bytes only.
func advance(bits wordFn) parseOp {
	return func(p *Packet) bool {
		n := bits(p)
		switch {
		case n%8 != 0:
			return p.parseFail(p.in.prog.parser.codes.invalidArgument)
		case n/8 > uint64(p.dataEnd()-p.head):
			return p.parseFail(p.in.prog.parser.codes.tooShort)
		}
		p.head += int(n / 8)
		p.forget()
		return true
	}
}

func (c *compiler) verifyOp(j *jsonParserOp) parseOp {
	var cond jsonValue
	c.decode(j.Parameters[0], &cond)
	ok := c.want(c.expression(&cond), xBool).bool.f
	var code *dexpr
	var number int
	if json.Unmarshal(j.Parameters[1], &number) == nil { // programs before 2.13
		code = constant(big.NewInt(int64(number)))
	} else {
		var v jsonValue
		c.decode(j.Parameters[1], &v)
		code = c.want(c.expression(&v), xData).data
	}
	m := code.m
	return func(p *Packet) bool {
		if ok(p) {
			return true
		}
		return p.parseFail(uint32(m(p)))
	}
}

func (c *compiler) setOp(j *jsonParserOp) parseOp {
	var dst, src jsonValue
	c.decode(j.Parameters[0], &dst)
	c.decode(j.Parameters[1], &src)
	if dst.Type != "field" {
		c.fail("set writes to type %q, want field", dst.Type)
	}
	r := c.fieldValue(dst.Value)
	if src.Type == "lookahead" {
		return c.setLookahead(r, src.Value)
	}
	var f opFn
	if r.f != nil && r.f.vl && src.Type == "field" {
		f = c.assignVL(r, c.fieldValue(src.Value))
	} else {
		x := c.expression(&src)
		if x.kind == xBool {
			x = expr{kind: xData, data: boolData(x.bool)}
		}
		f = c.assign(&lvalue{ref: &r}, c.want(x, xData).data)
	}
	return func(p *Packet) bool { f(p); return true }
}

func (c *compiler) setLookahead(r fieldRef, raw json.RawMessage) parseOp {
	off, bits := c.lookahead(raw)
	if r.f == nil || r.f.vl {
		c.fail("set cannot write a lookahead to this field")
	}
	if bits == r.f.bits && bits <= 64 {
		w := r.word()
		c.writes(r)
		return func(p *Packet) bool { return p.peek(p.w[w:w+1], off, bits) }
	}
	n := (bits + 63) / 64
	// The bits go through a buffer of their own, for assignments use the packet's.
	var src *dexpr
	if bits <= 64 {
		src = &dexpr{lo: bigZero, hi: constMask(bits), word: -1, m: func(p *Packet) uint64 { return p.key[0] }}
	} else {
		src = wideValue(func(p *Packet) []uint64 { return p.wide[:n] }, bits, false)
	}
	set := c.assign(&lvalue{ref: &r}, src)
	return func(p *Packet) bool {
		if cap(p.wide) < n {
			p.wide = make([]uint64, n)
		}
		if !p.peek(p.wide[:n], off, bits) {
			return false
		}
		p.key[0] = p.wide[:n][0]
		set(p)
		return true
	}
}

// extractOp compiles extract and extract_VL to a header, a stack or a union stack.
func (c *compiler) extractOp(j *jsonParserOp) parseOp {
	var v jsonValue
	c.decode(j.Parameters[0], &v)
	var h *header
	var s *stack
	var typ *headerType
	member := 0
	switch v.Type {
	case "regular":
		h = c.headerNamed(c.str(v.Value))
		typ = h.typ
	case "stack":
		s = c.stackNamed(c.str(v.Value))
		typ = s.typ
	case "union_stack":
		var names [2]string
		c.decode(v.Value, &names)
		if s = c.layout.ustacks[names[0]]; s == nil {
			c.fail("unknown header union stack %q", names[0])
		}
		typ, member = c.unionMember(s.utyp, names[1])
	default:
		c.fail("cannot extract to type %q, allowed are regular, stack and union_stack", v.Type)
	}
	if typ.bits%8 != 0 {
		c.fail("header type %q has %d bits, a packet header has whole bytes", typ.name, typ.bits)
	}
	var length *dexpr
	if j.Op == "extract_VL" {
		var l jsonValue
		c.decode(j.Parameters[1], &l)
		length = c.want(c.expression(&l), xData).data
		if typ.vl < 0 {
			c.fail("extract_VL to header type %q, which has no variable-length field", typ.name)
		}
	} else if typ.vl >= 0 && typ.vlExp == nil {
		c.fail("extract to header type %q with a variable-length field of unknown length", typ.name)
	}
	one := func(h *header) parseOp {
		switch {
		case typ.vl < 0:
			return extractFixed(h)
		case length != nil:
			return extractVL(h, length, typ.max)
		}
		return extractVL(h, c.ownLength(h), 0)
	}
	if h != nil {
		return one(h)
	}
	elems := make([]parseOp, s.size())
	for i := range elems {
		elems[i] = one(s.element(i, member))
	}
	return func(p *Packet) bool {
		n := p.w[s.next]
		if n >= uint64(len(elems)) {
			return p.parseFail(p.in.prog.parser.codes.outOfBounds)
		}
		if !elems[n](p) {
			return false
		}
		p.w[s.next]++
		return true
	}
}

// ownLength compiles a header type's length expression for one instance: its locals are
// the instance's fields.
func (c *compiler) ownLength(h *header) (e *dexpr) {
	a := &action{name: "length_exp of " + h.typ.name}
	for i := range h.typ.fields {
		f := &h.typ.fields[i]
		if f.bits > 64 {
			c.fail("length_exp of header type %q cannot use fields of more than 64 bits", h.typ.name)
		}
		a.params = append(a.params, actionParam{f.name, max(1, f.bits), f.word, 1})
	}
	outer := c.action
	c.action = a
	inner := c.want(c.expression(h.typ.vlExp), xData).data
	c.action = outer
	n := h.typ.words
	return &dexpr{lo: inner.lo, hi: inner.hi, word: -1, m: func(p *Packet) uint64 {
		saved := p.args
		p.args = p.w[h.base : h.base+n]
		v := inner.m(p)
		p.args = saved
		return v
	}, big: func(p *Packet, z *big.Int) {
		saved := p.args
		p.args = p.w[h.base : h.base+n]
		inner.exact()(p, z)
		p.args = saved
	}}
}

// plainExtract is the header that an operation extracts, nil unless that is all it does.
func (c *compiler) plainExtract(j *jsonParserOp) *header {
	if j.Op != "extract" {
		return nil
	}
	var v jsonValue
	c.decode(j.Parameters[0], &v)
	if v.Type != "regular" {
		return nil
	}
	if h := c.headerNamed(c.str(v.Value)); h.typ.vl < 0 && h.union == nil && !h.typ.codec.slow {
		return h
	}
	return nil
}

func extractFixed(h *header) parseOp {
	n, words, codec := h.typ.bits/8, h.typ.words, h.typ.codec
	return func(p *Packet) bool {
		if p.dataEnd()-p.head < n {
			return p.parseFail(p.in.prog.parser.codes.tooShort)
		}
		codec.extract(p.w[h.base:h.base+words], p.buf[p.head:])
		if h.union == nil {
			p.w[h.valid] = 1
		} else {
			p.markValid(h)
		}
		p.place(h)
		p.head += n
		return true
	}
}

// extractVL extracts a header with a variable-length field. The length may depend on the
// fields before it, so those are read first.
func extractVL(h *header, length *dexpr, maxBytes int) parseOp {
	t := h.typ
	vl := &t.fields[t.vl]
	at := index(length, 8*maxFieldBits)
	fixed := t.bits / 8
	readAll := func(p *Packet, n int) {
		bit := 0
		b := p.buf[p.head:]
		for i := range t.fields {
			f := &t.fields[i]
			if !f.vl {
				readField(p.w[h.base+f.word:h.base+f.word+f.words], b, bit, f.bits)
				bit += f.bits
				continue
			}
			p.w[h.base+f.word] = uint64(8 * n)
			if bit%8 == 0 {
				copy(p.vl[h.vlOff:h.vlOff+n], b[bit/8:])
			} else {
				for k := range n {
					p.vl[h.vlOff+k] = byte(readBits(b, bit+8*k, 8))
				}
			}
			bit += 8 * n
		}
	}
	ownFields := t.vlExp != nil
	return func(p *Packet) bool {
		codes := &p.in.prog.parser.codes
		left := p.dataEnd() - p.head
		if left < fixed {
			return p.parseFail(codes.tooShort)
		}
		if ownFields {
			for i := range t.fields[:t.vl] {
				f := &t.fields[i]
				readField(p.w[h.base+f.word:h.base+f.word+f.words], p.buf[p.head:], f.bit, f.bits)
			}
		}
		bits := at(p)
		switch n := bits / 8; {
		case bits < 0:
			return p.parseFail(codes.tooShort) // longer than any packet
		case bits%8 != 0:
			return p.parseFail(codes.invalidArgument)
		case left < fixed+n:
			return p.parseFail(codes.tooShort)
		case maxBytes != 0 && fixed+n > maxBytes, n > t.vlMax, vl.bits != 0:
			return p.parseFail(codes.headerTooShort)
		default:
			readAll(p, n)
			p.markValid(h)
			p.forget()
			p.head += fixed + n
			return true
		}
	}
}
