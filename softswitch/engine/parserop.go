package engine

import (
	"encoding/json"
	"strings"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

var parserArities = map[string]int{"extract": 1, "extract_VL": 2, "set": 2, "verify": 2, "shift": 1, "advance": 1, "primitive": 1}

// parserOps compiles the operations of a state. It lowers each run of operations that cannot fail
// to one fragment of code.
func (c *compiler) parserOps(s *parseState, js []bmv2json.ParserOp) {
	var list []Emit
	flush := func() {
		if len(list) > 0 {
			s.steps = append(s.steps, parseStep{pc: c.fragment(list...)})
			list = nil
		}
	}
	for i := range js {
		c.In("parser_ops", i, func() {
			j := &js[i]
			n, ok := parserArities[j.Op]
			if !ok {
				c.Fail("unknown parser op %q", j.Op)
			}
			if n != len(j.Parameters) {
				c.Fail("parser op %q has %d parameters, want %d", j.Op, len(j.Parameters), n)
			}
			var step parseStep
			switch j.Op {
			case "primitive":
				var prim bmv2json.Primitive
				c.Decode(j.Parameters[0], &prim)
				list = append(list, c.primitive(&prim))
				return
			case "set":
				src := c.Value(j.Parameters[1])
				if src.Type != "lookahead" {
					list = append(list, c.setOp(c.setTarget(j), src))
					return
				}
				step.op = c.setLookahead(c.setTarget(j), src.Value)
			case "extract", "extract_VL":
				step = c.extractOp(j)
				step.what = extracted(j.Op, c.Value(j.Parameters[0]))
			case "verify":
				step.op = c.verifyOp(j)
			case "shift":
				bytes := c.Int(j.Parameters[0])
				if bytes < 0 {
					c.Fail("shift by %d bytes", bytes)
				}
				step.op = advance(c.locate(expr.NewInt(8 * int64(bytes))))
			case "advance":
				step.op = advance(c.locate(c.operand(j.Parameters[0], expr.Data)))
			}
			if step.op != nil {
				step.number = len(c.code.parserOps)
				c.code.parserOps = append(c.code.parserOps, step.op)
			}
			flush()
			s.steps = append(s.steps, step)
		})
	}
	flush()
}

// advance skips bits. BMv2 skips only whole bytes.
func advance(bits located) parseOp {
	return func(p *Packet) bool {
		n := bits.get(p)
		switch {
		case n != allBits && n%8 != 0:
			return p.parseFail(p.in.prog.codes.invalidArgument)
		case n/8 > uint64(p.dataEnd()-p.head):
			return p.parseFail(p.in.prog.codes.tooShort)
		}
		p.head += int(n / 8)
		p.forgetPlaces()
		return true
	}
}

func (c *compiler) verifyOp(j *bmv2json.ParserOp) parseOp {
	ok := c.predicate(c.operand(j.Parameters[0], expr.Bool))
	var number int64
	var code located
	if json.Unmarshal(j.Parameters[1], &number) == nil { // programs before version 2.13
		code = c.locate(expr.NewInt(number))
	} else {
		code = c.locate(c.operand(j.Parameters[1], expr.Data))
	}
	return func(p *Packet) bool { return ok.holds(p) || p.parseFail(uint32(code.get(p))) }
}

func (c *compiler) setTarget(j *bmv2json.ParserOp) phv.Ref {
	dst := c.Value(j.Parameters[0])
	if dst.Type != "field" {
		c.Fail("set writes to type %q, want field", dst.Type)
	}
	return c.fieldValue(dst.Value)
}

func (c *compiler) setOp(dst phv.Ref, src *bmv2json.Value) Emit {
	if dst.F.Variable && src.Type == "field" {
		return c.assignVL(dst, c.fieldValue(src.Value))
	}
	n := c.expression(src)
	if n.Type == expr.Bool {
		n = expr.NewNumber(n)
	}
	return c.assign(expr.NewField(dst), c.want(n, expr.Data))
}

func (c *compiler) setLookahead(dst phv.Ref, raw json.RawMessage) parseOp {
	off, bits := c.lookahead(raw)
	if bits == dst.F.Bits && bits <= 64 && !dst.IsValidity() {
		c.writes(dst)
		w := dst.Word()
		return func(p *Packet) bool { return p.peek(p.W[w:w+1], off, bits) }
	}
	// The bits are the first temporaries while the assignment runs.
	t, n := int(c.asm.newTemps(phv.Words(bits))), phv.Words(bits)
	pc := c.fragment(c.assign(expr.NewField(dst), expr.NewWord(t, bits, false)))
	c.asm.temp = 0
	return func(p *Packet) bool {
		if !p.peek(p.W[t:t+n], off, bits) {
			return false
		}
		p.exec(pc)
		return true
	}
}

func (c *compiler) lookahead(raw json.RawMessage) (off, bits int) {
	var v [2]int
	c.Decode(raw, &v)
	if v[0] < 0 || v[1] < 1 || v[0] > bmv2json.MaxBits || v[1] > bmv2json.MaxBits {
		c.Fail("lookahead of %d bits at %d, allowed are 1 to %d", v[1], v[0], bmv2json.MaxBits)
	}
	return v[0], v[1]
}

// peek reads bits ahead of the parser's position. Reading beyond the packet is the error
// PacketTooShort.
func (p *Packet) peek(dst []uint64, off, bits int) bool {
	if off+bits > 8*(p.dataEnd()-p.head) {
		return p.parseFail(p.in.prog.codes.tooShort)
	}
	phv.ReadField(dst, p.buf[p.head:], off, bits)
	return true
}

// extractOp compiles extract and extract_VL to a header, a stack or a union stack.
func (c *compiler) extractOp(j *bmv2json.ParserOp) parseStep {
	v := c.Value(j.Parameters[0])
	var s *phv.Stack
	var elems []*phv.Header
	switch v.Type {
	case "regular":
		elems = []*phv.Header{c.headerNamed(c.Str(v.Value))}
	case "stack", "union_stack":
		var member int
		if v.Type == "stack" {
			s = c.stackNamed(c.Str(v.Value))
		} else {
			name, field := c.Names(v.Value, "[stack, member]")
			s = c.unionStackNamed(name)
			member = c.unionMember(s, field)
		}
		for _, e := range s.Elems {
			elems = append(elems, e[member])
		}
	default:
		c.Fail("cannot extract to type %q, allowed are regular, stack and union_stack", v.Type)
	}
	typ := elems[0].Type
	if typ.Bits%8 != 0 {
		c.Fail("header type %q has %d bits, a packet header has whole bytes", typ.Name, typ.Bits)
	}
	ops := make([]parseOp, len(elems))
	switch {
	case j.Op == "extract_VL":
		if typ.VL < 0 {
			c.Fail("extract_VL to header type %q, which has no variable-length field", typ.Name)
		}
		length := c.locate(c.operand(j.Parameters[1], expr.Data))
		for i, h := range elems {
			ops[i] = extractVL(h, length, typ.MaxBytes)
		}
	case typ.VL < 0 && s == nil && elems[0].Union == nil && !typ.Slow:
		h := elems[0]
		return parseStep{h: h, bytes: typ.Bits / 8, valid: h.Valid}
	case typ.VL < 0:
		for i, h := range elems {
			ops[i] = extractFixed(h)
		}
	default:
		if typ.LengthExp == nil {
			c.Fail("extract to header type %q with a variable-length field of unknown length", typ.Name)
		}
		for i, h := range elems {
			c.locals = h
			ops[i] = extractVL(h, c.locate(c.want(c.expression(typ.LengthExp), expr.Data)), 0)
			c.locals = nil
		}
	}
	if s == nil {
		return parseStep{op: ops[0]}
	}
	return parseStep{op: func(p *Packet) bool {
		n := p.W[s.Next]
		if n >= uint64(len(ops)) {
			return p.parseFail(p.in.prog.codes.outOfBounds)
		}
		if !ops[n](p) {
			return false
		}
		p.W[s.Next]++
		return true
	}}
}

// extracted returns the target of an extraction in the words of BMv2's log, such as "header 'ethernet'".
func extracted(op string, v *bmv2json.Value) string {
	name := strings.Trim(string(v.Value), `[]"`)
	switch {
	case v.Type == "stack":
		return "to header stack " + name
	case v.Type == "union_stack":
		return "to header union stack " + name
	case op == "extract_VL":
		return "variable-sized header '" + name + "'"
	}
	return "header '" + name + "'"
}

func (c *compiler) unionMember(s *phv.Stack, name string) int {
	for i, m := range s.UType.Headers {
		if m[0] == name {
			return i
		}
	}
	c.Fail("header union type %q has no member %q", s.UType.Name, name)
	return 0
}

func extractFixed(h *phv.Header) parseOp {
	n := h.Type.Bits / 8
	return func(p *Packet) bool {
		if p.dataEnd()-p.head < n {
			return p.parseFail(p.in.prog.codes.tooShort)
		}
		p.Extract(h, p.buf[p.head:], 0)
		p.MarkValid(h)
		p.place(h)
		p.head += n
		return true
	}
}

// extractVL extracts a header with a variable-length field. It reads the fields before it first,
// because the field's length in bits may depend on them.
func extractVL(h *phv.Header, length located, maxBytes int) parseOp {
	t := h.Type
	fixed := t.Bits / 8
	return func(p *Packet) bool {
		codes := &p.in.prog.codes
		left := p.dataEnd() - p.head
		if left < fixed {
			return p.parseFail(codes.tooShort)
		}
		if t.LengthExp != nil {
			for i := range t.Fields[:t.VL] {
				f := &t.Fields[i]
				phv.ReadField(p.Field(phv.Ref{H: h, F: f}), p.buf[p.head:], f.Bit, f.Bits)
			}
		}
		bits := length.get(p)
		n := int(min(bits/8, bmv2json.MaxBits))
		switch {
		case bits != allBits && bits%8 != 0:
			return p.parseFail(codes.invalidArgument)
		case left < fixed+n:
			return p.parseFail(codes.tooShort)
		case maxBytes != 0 && fixed+n > maxBytes, n > t.VLMax:
			return p.parseFail(codes.headerTooShort)
		}
		p.Extract(h, p.buf[p.head:], n)
		p.MarkValid(h)
		p.forgetPlaces()
		p.head += fixed + n
		return true
	}
}

// keyPart compiles an element of a transition key.
func (c *compiler) keyPart(j *bmv2json.Value) keyPart {
	var s *phv.Stack
	var typ *phv.Type
	var field string
	member := 0
	switch j.Type {
	case "field":
		r := c.fieldValue(j.Value)
		if r.F.Variable {
			c.Fail("variable-length field %q in a transition key", r.F.Name)
		}
		k := keyPart{bits: r.F.Bits, word: -1, load: func(p *Packet, dst []uint64) bool {
			copy(dst, p.Field(r))
			return true
		}}
		if r.F.Words == 1 {
			k.word = r.Word()
		}
		return k
	case "lookahead":
		off, bits := c.lookahead(j.Value)
		return keyPart{bits: bits, word: -1, load: func(p *Packet, dst []uint64) bool { return p.peek(dst, off, bits) }}
	case "stack_field":
		var name string
		name, field = c.Names(j.Value, "[stack, field]")
		s = c.stackNamed(name)
		typ = s.Type
	case "union_stack_field":
		var v [3]string
		c.Decode(j.Value, &v)
		s, field = c.unionStackNamed(v[0]), v[2]
		member = c.unionMember(s, v[1])
		typ = s.Elems[0][member].Type
	default:
		c.Fail("unknown type %q in a transition key, allowed are field, stack_field, union_stack_field and lookahead", j.Type)
	}
	// The field is in the element that was extracted last.
	f := &typ.Fields[c.fieldIndex(typ, field)]
	if f.Variable {
		c.Fail("variable-length field %q in a transition key", field)
	}
	return keyPart{bits: f.Bits, word: -1, load: func(p *Packet, dst []uint64) bool {
		n := p.W[s.Next]
		if n == 0 {
			return p.parseFail(p.in.prog.codes.outOfBounds)
		}
		copy(dst, p.Field(phv.Ref{H: s.Elems[n-1][member], F: f}))
		return true
	}}
}
