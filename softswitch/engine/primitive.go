package engine

import (
	"fmt"
	"math/big"
	"math/bits"
	"strings"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// arities holds the number of parameters of the primitives that all of BMv2's switches have.
var arities = map[string]int{
	"assign": 2, "modify_field": 2, "assign_VL": 2, "assign_header": 2, "copy_header": 2, "assign_union": 2,
	"assign_header_stack": 2, "assign_union_stack": 2, "push": 2, "pop": 2, "assert": 1, "assume": 1, "exit": 0, "log_msg": 2,
	"add": 3, "subtract": 3, "bit_xor": 3, "bit_or": 3, "bit_and": 3, "shift_left": 3, "shift_right": 3,
	"add_to_field": 2, "subtract_from_field": 2, "modify_field_rng_uniform": 3, "add_header": 1, "add_header_fast": 1, "remove_header": 1,
	"modify_field_with_hash_based_offset": 4, "no_op": 0, "execute_meter": 3, "count": 2, "register_read": 3,
	"register_write": 3, "truncate": 1,
}

var arithmetic = map[string]expr.Operator{
	"add": expr.Add, "subtract": expr.Sub, "bit_xor": expr.BitXor, "bit_or": expr.BitOr, "bit_and": expr.BitAnd,
	"shift_left": expr.ShiftLeft, "shift_right": expr.ShiftRight, "add_to_field": expr.Add, "subtract_from_field": expr.Sub,
}

// primitive compiles one primitive call other than a jump.
func (c *compiler) primitive(j *bmv2json.Primitive) Emit {
	n, ok := arities[j.Op]
	if !ok {
		s := c.model.Primitive(c, j)
		if s == nil {
			c.Fail("unknown primitive %q", j.Op)
		}
		return s
	}
	c.Arity(j, n)
	data := func(i int) *expr.Node { return c.Data(j, i) }
	switch j.Op {
	case "assign", "modify_field":
		return c.assignTo(j, data(1))
	case "add", "subtract", "bit_xor", "bit_or", "bit_and", "shift_left", "shift_right":
		return c.assignTo(j, expr.NewOp(arithmetic[j.Op], data(1), data(2)))
	case "add_to_field", "subtract_from_field":
		return c.assignTo(j, expr.NewOp(arithmetic[j.Op], data(0), data(1)))
	case "assign_VL":
		return c.assignVL(c.target(j, 0, expr.Data).Ref, c.target(j, 1, expr.Data).Ref)
	case "assign_header", "copy_header":
		return c.assignHeader(c.arg(j, 0, expr.Header), c.arg(j, 1, expr.Header))
	case "assign_union":
		d, s := c.arg(j, 0, expr.Union), c.arg(j, 1, expr.Union)
		if d.UType != s.UType {
			c.Fail("header union of type %q assigned to one of type %q", s.UType.Name, d.UType.Name)
		}
		c.writesUnion(d.UType)
		return Call(func(p *Packet) { p.eval.AssignUnion(d, s) })
	case "assign_header_stack", "assign_union_stack":
		d, s := c.stackArg(j, 0), c.stackArg(j, 1)
		if d.Type != s.Type || d.UType != s.UType || len(d.Elems) != len(s.Elems) {
			c.Fail("header stacks %q and %q differ in type or size", d.Name, s.Name)
		}
		return Call(func(p *Packet) { p.AssignStack(d, s) })
	case "push":
		s := c.stackArg(j, 0)
		return withWord(data(1), func(p *Packet, n uint64) { p.Push(s, n) })
	case "pop":
		s := c.stackArg(j, 0)
		return withWord(data(1), func(p *Packet, n uint64) { p.Pop(s, n) })
	case "assert", "assume":
		return c.assert(j.Op, expr.NewIsTrue(data(0)))
	case "exit":
		return func(a *assembler) {
			a.exits = true
			a.call(func(p *Packet) { p.exit = true })
		}
	case "log_msg":
		return c.logMsg(j)
	case "modify_field_rng_uniform":
		return c.randomTo(j, data(1), data(2))
	case "add_header":
		return withHeader(c.headerArg(j, 0), (*Packet).addHeader)
	case "add_header_fast":
		return withHeader(c.headerArg(j, 0), func(p *Packet, h *phv.Header) { p.MarkValid(h) })
	case "remove_header":
		return withHeader(c.headerArg(j, 0), (*Packet).removeHeader)
	case "modify_field_with_hash_based_offset":
		return c.hashTo(j, data(1), data(3))
	case "no_op":
		return func(*assembler) {}
	case "execute_meter":
		return c.executeMeter(j, data(1))
	case "count":
		s := c.counters.named(c, c.Name(j, 0, "counter_array"))
		at := data(1)
		return func(a *assembler) { a.emit(instr{op: opCount, a: uint32(s.index), b: a.index(at)}) }
	case "register_read":
		return c.readCell(c.register(c.Name(j, 1, "register_array")), data(2), c.target(j, 0, expr.Data))
	case "register_write":
		return c.writeCell(c.register(c.Name(j, 0, "register_array")), data(1), data(2))
	}
	return withWord(data(0), func(p *Packet, v uint64) { p.trunc = int(min(v, uint64(p.trunc))) }) // truncate
}

// assignTo assigns to the first parameter.
func (c *compiler) assignTo(j *bmv2json.Primitive, src *expr.Node) Emit {
	return c.assign(c.target(j, 0, expr.Data), src)
}

// computed assigns the number that compute puts in word t, unless compute jumps to skip.
func (c *compiler) computed(dst *expr.Node, compute func(a *assembler, t int, skip *label)) Emit {
	t := c.scratch
	set := func(*assembler) {}
	if dst.Kind != expr.Param { // a parameter is a copy that nobody reads
		set = c.assign(dst, expr.NewWord(t, 64, false))
	}
	return func(a *assembler) {
		var skip label
		compute(a, t, &skip)
		set(a)
		a.place(&skip)
	}
}

// withWord returns a statement that calls f with the lowest word of a number.
func withWord(n *expr.Node, f func(p *Packet, v uint64)) Emit {
	return func(a *assembler) {
		w := a.operand(n, allBits)
		a.call(func(p *Packet) { f(p, p.W[w]) })
	}
}

// withHeader returns a statement that calls f with the header that an expression designates, if
// there is one.
func withHeader(n *expr.Node, f func(p *Packet, h *phv.Header)) Emit {
	if h := n.Header; h != nil {
		return Call(func(p *Packet) { f(p, h) })
	}
	return Call(func(p *Packet) {
		if h := p.eval.Header(n); h != nil {
			f(p, h)
		}
	})
}

func (c *compiler) assignHeader(d, s *expr.Node) Emit {
	if d.HType != s.HType {
		c.Fail("header of type %q assigned to one of type %q", s.HType.Name, d.HType.Name)
	}
	c.writesHeader(d)
	return withHeader(d, func(p *Packet, dst *phv.Header) {
		if src := p.eval.Header(s); src != nil {
			p.Assign(dst, src)
		}
	})
}

// addHeader makes a header valid with all fields 0, unless it is valid already.
func (p *Packet) addHeader(h *phv.Header) {
	if p.IsValid(h) {
		return
	}
	p.forgetPlaces() // the packet leaves with other headers than it came with
	clear(p.Words(h))
	p.MarkValid(h)
	p.Size += p.Length(h)
}

func (p *Packet) removeHeader(h *phv.Header) {
	if p.IsValid(h) {
		p.Size -= p.Length(h)
		p.W[h.Valid] = 0
	}
}

// writesUnion records that the program writes members of unions.
func (c *compiler) writesUnion(t *bmv2json.HeaderUnionType) {
	for _, m := range t.Headers {
		c.writesType(c.layout.Types[m[1]])
	}
}

// stackArg compiles a stack argument that the primitive writes.
func (c *compiler) stackArg(j *bmv2json.Primitive, i int) (s *phv.Stack) {
	c.In("parameters", i, func() {
		n := c.expression(&j.Parameters[i])
		if s = n.Stack; s == nil || n.Kind != expr.Fixed {
			c.Fail("want a header stack, not %v", n.Type)
		}
	})
	if s.UType != nil {
		c.writesUnion(s.UType)
	}
	for _, e := range s.Elems {
		c.writesAll(e)
	}
	return s
}

// assert drops the packet if the condition does not hold; BMv2 aborts the process.
func (c *compiler) assert(op string, cond *expr.Node) Emit {
	what := fmt.Sprintf("%s failed in %s", op, c.Path())
	return func(a *assembler) {
		a.exits = true
		var ok label
		a.branch(cond, true, &ok)
		a.call(func(p *Packet) {
			p.failed, p.exit = true, true
			p.in.log(what)
		})
		a.place(&ok)
	}
}

// logMsg replaces every {} of a format by a value.
func (c *compiler) logMsg(j *bmv2json.Primitive) Emit {
	format := c.Name(j, 0, "string")
	var args []*expr.Node
	c.In("parameters", 1, func() {
		if j.Parameters[1].Type != "parameters_vector" {
			c.Fail("parameter is of type %q, want parameters_vector", j.Parameters[1].Type)
		}
		inner := bmv2json.Primitive{Op: j.Op}
		// Older versions of p4c write an empty vector as an empty object.
		if raw := j.Parameters[1].Value; string(raw) != "{}" {
			c.Decode(raw, &inner.Parameters)
		}
		for i := range inner.Parameters {
			args = append(args, c.Data(&inner, i))
		}
	})
	if n := strings.Count(format, "{}"); n != len(args) {
		c.Fail("log_msg format %q has %d {} for %d values", format, n, len(args))
	}
	return Call(func(p *Packet) {
		if p.in.opts.Log == nil {
			return
		}
		text, z := format, new(big.Int)
		var done strings.Builder
		for _, n := range args {
			p.eval.Data(n, z)
			before, after, _ := strings.Cut(text, "{}")
			done.WriteString(before + z.String())
			text = after
		}
		p.in.log(done.String() + text)
	})
}

// randomTo assigns a random number from low to high. If low is above high the target keeps its
// value, as in BMv2.
func (c *compiler) randomTo(j *bmv2json.Primitive, low, high *expr.Node) Emit {
	return c.computed(c.target(j, 0, expr.Data), func(a *assembler, t int, skip *label) {
		lo, hi := a.operand(low, allBits), a.operand(high, allBits)
		a.jump(instr{op: opJumpLT, a: hi, b: lo}, skip)
		a.call(func(p *Packet) { p.W[t] = p.W[lo] + p.in.random(p.W[hi]-p.W[lo]) })
	})
}

// random returns a random number from 0 to n.
func (in *Instance) random(n uint64) uint64 {
	v := mix(in.seed.Add(0x9e3779b97f4a7c15))
	if n == ^uint64(0) {
		return v
	}
	hi, _ := bits.Mul64(v, n+1)
	return hi
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// hashTo assigns base + hash mod size. A size of 0 counts as 1, as in BMv2.
func (c *compiler) hashTo(j *bmv2json.Primitive, base, size *expr.Node) Emit {
	calc := c.calcs.named(c, c.Name(j, 2, "calculation"))
	c.usesInput(calc)
	return c.Compute(j, 0, base, size, func(p *Packet, base, size uint64) uint64 { return base + calc.output(p)%max(1, size) })
}

// executeMeter assigns the packet's color.
func (c *compiler) executeMeter(j *bmv2json.Primitive, at *expr.Node) Emit {
	s := c.meters.named(c, c.Name(j, 0, "meter_array"))
	return c.computed(c.target(j, 2, expr.Data), func(a *assembler, t int, skip *label) {
		i := a.index(at)
		a.jump(instr{op: opJumpGEK, a: i, k: uint64(s.size)}, skip)
		a.call(func(p *Packet) { p.W[t] = p.in.meters[s.index][p.W[i]].run(p.Bytes, s, p.now) })
	})
}

// readCell reads a register's cell. Beyond the register's end the target keeps its value.
func (c *compiler) readCell(r *registerSpec, at, dst *expr.Node) Emit {
	set := c.assign(dst, expr.NewCell(r.index, r.bits, at))
	if f := dst.Ref.F; dst.Kind == expr.Field && f.Bits <= 64 && !f.Saturating && r.bits <= 64 {
		return func(a *assembler) {
			a.emit(instr{op: opRegRead, a: uint32(r.index), b: a.index(at), d: uint32(dst.Word), mask: f.Mask})
		}
	}
	return func(a *assembler) {
		var skip label
		a.jump(instr{op: opJumpGEK, a: a.index(at), k: uint64(r.size)}, &skip)
		set(a)
		a.place(&skip)
	}
}

// writeCell writes a register's cell. Beyond the register's end it does nothing.
func (c *compiler) writeCell(r *registerSpec, at, src *expr.Node) Emit {
	return func(a *assembler) {
		i := a.index(at)
		if r.bits <= 64 {
			mask := phv.LastMask(r.bits)
			a.emit(instr{op: opRegWrite, a: uint32(r.index), b: i, d: a.operand(src, mask), mask: mask})
			return
		}
		t := a.newTemps(r.words)
		a.store(src, t, r.bits)
		a.call(func(p *Packet) { copy(p.in.registers[r.index].at(p.W[i]), p.W[t:]) })
	}
}
