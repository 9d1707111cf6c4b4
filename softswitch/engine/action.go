package engine

import (
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// action is a compiled action.
type action struct {
	body   []Emit // the action's primitives
	pc     uint32 // first instruction of the lowered action
	name   string
	params []actionParam
	words  int  // length of all parameters together, in words
	loops  bool // the action jumps backwards
	lock   int  // register whose lock the action holds, −1 for none
}

// actionParam is a parameter and the index of its first word among the words of all parameters.
type actionParam struct {
	ParamInfo
	word int
}

func (a *action) noop() bool { return len(a.body) == 0 }

func (c *compiler) buildActions(doc *bmv2json.Program) {
	c.actionID, c.actionBy = map[int]*action{}, map[string]*action{}
	for i := range doc.Actions {
		c.In("actions", i, func() {
			j := &doc.Actions[i]
			if c.actionID[j.ID] != nil {
				c.Fail("action id %d is used twice", j.ID)
			}
			a := c.buildAction(j)
			c.actions, c.actionID[j.ID] = append(c.actions, a), a
			if c.actionBy[a.name] == nil {
				c.actionBy[a.name] = a
			}
		})
	}
}

func (c *compiler) buildAction(j *bmv2json.Action) *action {
	a := &action{name: j.Name}
	for _, q := range j.Params {
		if q.Bits < 1 || q.Bits > bmv2json.MaxBits {
			c.Fail("parameter %q of action %q has bitwidth %d, allowed are 1 to %d", q.Name, j.Name, q.Bits, bmv2json.MaxBits)
		}
		a.params = append(a.params, actionParam{q, a.words})
		a.words += phv.Words(q.Bits)
	}
	c.action = a
	a.lock = c.locking(func() { a.body = c.primitives(j.Primitives) })
	c.action = nil
	return a
}

// maxJumps bounds the backward jumps in one run of an action. The last one ends the action.
const maxJumps = 1 << 16

// primitives compiles a list of primitive calls.
func (c *compiler) primitives(js []bmv2json.Primitive) []Emit {
	list := make([]Emit, len(js))
	for i := range js {
		c.In("primitives", i, func() {
			switch j := &js[i]; j.Op {
			case "_jump":
				c.Arity(j, 1)
				list[i] = c.jump(i, len(js), expr.NewTruth(false), c.Data(j, 0))
			case "_jump_if_zero":
				c.Arity(j, 2)
				list[i] = c.jump(i, len(js), expr.NewIsTrue(c.Data(j, 0)), c.Data(j, 1))
			default:
				list[i] = c.primitive(j)
			}
		})
	}
	return list
}

// jump emits a jump from primitive i of n to another one, unless the condition holds. A jump
// beyond the last primitive ends the action.
func (c *compiler) jump(i, n int, unless, to *expr.Node) Emit {
	if to.Kind != expr.Const {
		c.Fail("the target of a jump must be a constant")
	}
	k := n
	if to.K.IsUint64() && to.K.Uint64() < uint64(n) {
		k = int(to.K.Uint64())
	}
	if k > i {
		return func(a *assembler) { a.branch(unless, false, &a.labels[k]) }
	}
	if c.action == nil {
		c.Fail("a jump backwards outside of an action")
	}
	c.action.loops = true
	return func(a *assembler) {
		var on label
		a.branch(unless, true, &on)
		a.emit(instr{op: opAddK, d: a.base, a: a.base, k: 1, mask: allBits})
		a.jump(instr{op: opJumpGEK, a: a.base, k: maxJumps}, &a.labels[n])
		a.jump(instr{op: opJump}, &a.labels[k])
		a.place(&on)
	}
}

func (c *compiler) Arity(j *bmv2json.Primitive, n int) {
	if len(j.Parameters) != n {
		c.Fail("primitive %q has %d parameters, want %d", j.Op, len(j.Parameters), n)
	}
}

// arg compiles argument i to an expression of type t. If t is data it converts a condition to a
// number.
func (c *compiler) arg(j *bmv2json.Primitive, i int, t expr.Type) (n *expr.Node) {
	c.In("parameters", i, func() {
		n = c.expression(&j.Parameters[i])
		if t == expr.Data && n.Type == expr.Bool {
			n = expr.NewNumber(n)
		}
		c.want(n, t)
	})
	return n
}

func (c *compiler) Data(j *bmv2json.Primitive, i int) *expr.Node { return c.arg(j, i, expr.Data) }

// target compiles an operand that is only written. It does what arg does, but the operand's field or header does not
// count as read.
func (c *compiler) target(j *bmv2json.Primitive, i int, t expr.Type) (n *expr.Node) {
	switch j.Parameters[i].Type {
	case "field", "header":
		c.unread(func() { n = c.arg(j, i, t) })
	default:
		n = c.arg(j, i, t)
	}
	return n
}

// headerArg compiles a header argument whose fields the primitive does not read. A header that is
// chosen at run time counts as written.
func (c *compiler) headerArg(j *bmv2json.Primitive, i int) *expr.Node {
	h := c.target(j, i, expr.Header)
	if h.Kind != expr.Fixed {
		c.writesHeader(h)
	}
	return h
}

// Name reads parameter i, whose value must be a name of the given type.
func (c *compiler) Name(j *bmv2json.Primitive, i int, typ string) (name string) {
	c.In("parameters", i, func() {
		if j.Parameters[i].Type != typ {
			c.Fail("parameter is of type %q, want %q", j.Parameters[i].Type, typ)
		}
		name = c.Str(j.Parameters[i].Value)
	})
	return name
}

// assign writes a number to a field or a register's cell. It masks or saturates the number to the
// width.
func (c *compiler) assign(dst, src *expr.Node) Emit {
	switch {
	case dst.Kind == expr.Cell:
		return c.writeCell(c.registers.list[dst.Index], dst.L, src)
	case dst.Kind == expr.Variable:
		c.Fail("variable-length field %q cannot be assigned a number", dst.Ref.F.Name)
	case dst.Ref.F == nil:
		c.Fail("this cannot be assigned to")
	}
	f := dst.Ref.F
	if f.Saturating {
		op := expr.SaturateNatural
		if f.Signed {
			op = expr.Saturate
		}
		src = expr.NewOp(op, src, expr.NewInt(int64(f.Bits)))
	}
	if dst.Kind == expr.Field {
		if dst.Ref.IsValidity() {
			c.Fail("the validity of header %q cannot be assigned to", dst.Ref.H.Name)
		}
		c.writes(dst.Ref)
		return func(a *assembler) { a.store(src, uint32(dst.Word), f.Bits) }
	}
	c.writesHeader(dst.L)
	return func(a *assembler) {
		t := a.newTemps(f.Words)
		a.store(src, t, f.Bits)
		a.call(func(p *Packet) {
			if h := p.eval.Header(dst.L); h != nil {
				copy(p.Field(phv.Ref{H: h, F: f}), p.W[t:])
			}
		})
	}
}

// assignVL copies a variable-length field.
func (c *compiler) assignVL(dst, src phv.Ref) Emit {
	if !dst.F.Variable || !src.F.Variable {
		c.Fail("assign_VL wants two variable-length fields")
	}
	c.writes(dst)
	return Call(func(p *Packet) {
		b := p.Variable(src)
		b = b[:min(len(b), dst.H.Type.VLMax)]
		p.W[dst.Word()] = uint64(8 * len(b))
		copy(p.Variable(dst), b)
	})
}

// Call returns a statement that calls a function.
func Call(f func(p *Packet)) Emit { return func(a *assembler) { a.call(f) } }

// boundAction is an action with its arguments.
type boundAction struct {
	act  *action // nil for no action
	args []uint64
}

// The functions below record which fields a program reads and writes. A program never names most
// fields of its headers. Extraction leaves those fields in the frame and loads only the others,
// because a packet that leaves with its own headers needs no copy of them. loadRest loads the
// fields left in the frame before a header is written from its fields and before its place is
// forgotten.

// uses records that the program reads a field.
func (c *compiler) uses(r phv.Ref) {
	if !c.writing {
		for k := range r.F.Words {
			c.used[r.Word()+k] = true
		}
	}
}

// unread runs compile. Fields that compile names do not count as read.
func (c *compiler) unread(compile func()) {
	outer := c.writing
	c.writing = true
	compile()
	c.writing = outer
}

// usesHeader records that the program reads or assigns a whole header.
func (c *compiler) usesHeader(h *phv.Header) {
	for i := range h.Type.Fields {
		c.uses(phv.Ref{H: h, F: &h.Type.Fields[i]})
	}
}

// writes records that the program writes a field, so that the deparser must write it too.
func (c *compiler) writes(r phv.Ref) {
	for k := range r.F.Words {
		c.written[r.Word()+k] = true
	}
}

// writesAll records that the program writes whole headers.
func (c *compiler) writesAll(hs []*phv.Header) {
	for _, h := range hs {
		for i := range h.Type.Fields {
			c.writes(phv.Ref{H: h, F: &h.Type.Fields[i]})
		}
	}
}

// writesType records that the program writes headers of type t that are chosen at run time.
func (c *compiler) writesType(t *phv.Type) {
	for _, h := range c.layout.List {
		if h.Type == t {
			c.writesAll([]*phv.Header{h})
		}
	}
}

// writesHeader records that the program writes a header.
func (c *compiler) writesHeader(h *expr.Node) {
	if h.Kind == expr.Fixed {
		c.writesAll([]*phv.Header{h.Header})
	} else {
		c.writesType(h.HType)
	}
}
