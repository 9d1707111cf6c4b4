package engine

import (
	"maps"
	"math/big"
)

// opFn is one compiled step.
type opFn func(p *Packet)

// action is a compiled action: the primitives it calls, in order. Registers that it uses
// are locked around run.
type action struct {
	name   string
	id     int
	params []actionParam
	words  int         // of all parameters
	run    opFn        // reads its parameters from p.args
	noop   bool        // nothing to run
	body   []statement // to be lowered; nil where run has to be called
	anew   bool        // the packet is written as a whole once it has run
	lock   int         // register whose lock is held around body, −1 for none
	pc     uint32      // where the lowered action stands
}

type actionParam struct {
	name  string
	bits  int
	word  int
	words int
}

func (c *compiler) buildActions(j *jsonProgram) {
	c.actions = map[int]*action{}
	seen := map[string]*action{}
	for i := range j.Actions {
		c.in("actions", i, func() {
			a := c.buildAction(&j.Actions[i])
			if c.actions[a.id] != nil {
				c.fail("action id %d is used twice", a.id)
			}
			c.actions[a.id] = a
			if seen[a.name] == nil {
				seen[a.name] = a
				c.actionBy = append(c.actionBy, a)
			}
		})
	}
}

func (c *compiler) buildAction(j *jsonAction) *action {
	a := &action{name: j.Name, id: j.ID}
	for _, q := range j.Params {
		if q.Bits < 1 || q.Bits > maxFieldBits {
			c.fail("parameter %q of action %q has bitwidth %d, allowed are 1 to %d", q.Name, j.Name, q.Bits, maxFieldBits)
		}
		n := (q.Bits + 63) / 64
		a.params = append(a.params, actionParam{q.Name, q.Bits, a.words, n})
		a.words += n
	}
	c.action = a
	a.noop = len(j.Primitives) == 0
	others := c.written
	c.written = map[int]bool{}
	a.run = c.withRegisters(func() opFn {
		steps := c.steps(j.Primitives)
		a.body = c.statements(j.Primitives, steps)
		a.lock = c.lockOf(c.regs)
		return runOf(steps)
	})
	a.anew = c.writesAnew()
	maps.Copy(others, c.written)
	c.written = others
	c.action = nil
	if run := a.run; a.anew {
		a.run = func(p *Packet) { p.forget(); run(p) }
	}
	return a
}

// step is one primitive of an action with jumps. A jump has a target; a conditional one
// is taken when cond is false.
type step struct {
	run    opFn
	jump   bool
	cond   boolFn
	to     int // a constant target, else −1
	target func(p *Packet) int
}

// maxSteps bounds the primitives of one run of an action, for jumps may go backwards.
const maxSteps = 1 << 16

// primitives compiles a list of primitive calls.
func (c *compiler) primitives(js []jsonPrimitive) opFn { return runOf(c.steps(js)) }

func (c *compiler) steps(js []jsonPrimitive) []step {
	steps := make([]step, len(js))
	for i := range js {
		c.in("primitives", i, func() { steps[i] = c.step(&js[i], len(js)) })
	}
	return steps
}

func runOf(steps []step) opFn {
	ops := make([]opFn, 0, len(steps))
	for _, s := range steps {
		if s.jump {
			return runSteps(steps)
		}
		if s.run != nil {
			ops = append(ops, s.run)
		}
	}
	return sequence(ops)
}

func sequence(ops []opFn) opFn {
	switch len(ops) {
	case 0:
		return func(*Packet) {}
	case 1:
		return ops[0]
	case 2:
		a, b := ops[0], ops[1]
		return func(p *Packet) { a(p); b(p) }
	case 3:
		a, b, d := ops[0], ops[1], ops[2]
		return func(p *Packet) { a(p); b(p); d(p) }
	}
	return func(p *Packet) {
		for _, f := range ops {
			f(p)
		}
	}
}

func runSteps(steps []step) opFn {
	return func(p *Packet) {
		for pc, n := 0, 0; pc < len(steps) && n < maxSteps; n++ {
			s := &steps[pc]
			switch {
			case !s.jump:
				if s.run != nil {
					s.run(p)
				}
				pc++
			case s.cond == nil || !s.cond(p):
				if pc = s.to; pc < 0 {
					pc = s.target(p)
				}
			default:
				pc++
			}
		}
	}
}

func (c *compiler) step(j *jsonPrimitive, n int) step {
	switch j.Op {
	case "_jump":
		c.arity(j, 1)
		to := c.dataArg(j, 0)
		return step{jump: true, to: constTarget(to, n), target: jumpTarget(to, n)}
	case "_jump_if_zero":
		c.arity(j, 2)
		to := c.dataArg(j, 1)
		return step{jump: true, cond: truth(c.dataArg(j, 0)), to: constTarget(to, n), target: jumpTarget(to, n)}
	}
	return step{run: c.primitive(j)}
}

// constTarget is where a jump with a constant target goes, −1 for other jumps.
func constTarget(e *dexpr, n int) int {
	if e.konst == nil {
		return -1
	}
	if e.konst.Sign() >= 0 && e.konst.IsInt64() && e.konst.Int64() < int64(n) {
		return int(e.konst.Int64())
	}
	return n
}

// jumpTarget is where a jump goes; beyond the last primitive it ends the action.
func jumpTarget(e *dexpr, n int) func(p *Packet) int {
	at := index(e, n)
	return func(p *Packet) int {
		if i := at(p); i >= 0 {
			return i
		}
		return n
	}
}

func (c *compiler) arity(j *jsonPrimitive, n int) {
	if len(j.Parameters) != n {
		c.fail("primitive %q has %d parameters, want %d", j.Op, len(j.Parameters), n)
	}
}

// arg compiles parameter i as an expression.
func (c *compiler) arg(j *jsonPrimitive, i int) (x expr) {
	c.in("parameters", i, func() { x = c.expression(&j.Parameters[i]) })
	return x
}

func (c *compiler) typedArg(j *jsonPrimitive, i int, k xkind) (x expr) {
	c.in("parameters", i, func() { x = c.want(c.expression(&j.Parameters[i]), k) })
	return x
}

// dataArg compiles a number; a truth value is taken as 0 or 1.
func (c *compiler) dataArg(j *jsonPrimitive, i int) *dexpr {
	x := c.arg(j, i)
	if x.kind == xBool {
		return boolData(x.bool)
	}
	c.in("parameters", i, func() { c.want(x, xData) })
	return x.data
}

// writtenArg is typedArg for what is written: a field or header that is named is not read.
func (c *compiler) writtenArg(j *jsonPrimitive, i int, k xkind) (x expr) {
	compile := func() { x = c.typedArg(j, i, k) }
	switch j.Parameters[i].Type {
	case "field", "header":
		c.unread(compile)
	default:
		compile()
	}
	return x
}

// headerArg compiles a header of which no field is read. A header that may be another for
// each packet counts as written.
func (c *compiler) headerArg(j *jsonPrimitive, i int) *hexpr {
	h := c.writtenArg(j, i, xHeader).head
	if h.fixed == nil {
		c.writesTo(h)
	}
	return h
}

// target compiles something a number is assigned to.
func (c *compiler) target(j *jsonPrimitive, i int) *lvalue {
	x := c.writtenArg(j, i, xData)
	if x.lval == nil {
		c.in("parameters", i, func() { c.fail("type %q cannot be assigned to", j.Parameters[i].Type) })
	}
	return x.lval
}

func (c *compiler) fieldArg(j *jsonPrimitive, i int) fieldRef {
	v := c.target(j, i)
	if v.ref == nil {
		c.in("parameters", i, func() { c.fail("want a field of a fixed header") })
	}
	return *v.ref
}

// nameArg reads a parameter of one type whose value is a name.
func (c *compiler) nameArg(j *jsonPrimitive, i int, typ string) (name string) {
	c.in("parameters", i, func() {
		if j.Parameters[i].Type != typ {
			c.fail("parameter is of type %q, want %q", j.Parameters[i].Type, typ)
		}
		name = c.str(j.Parameters[i].Value)
	})
	return name
}

// boundAction is an action with its arguments, and where the pipeline goes from there.
type boundAction struct {
	act  *action // nil does nothing
	args []uint64
}

// bindHex binds the arguments of the JSON, which may be negative or unpadded.
func (c *compiler) bindHex(a *action, data []string) *boundAction {
	if len(data) != len(a.params) {
		c.fail("action %q takes %d arguments, not %d", a.name, len(a.params), len(data))
	}
	b := &boundAction{a, make([]uint64, a.words)}
	for i, s := range data {
		c.in("action_data", i, func() { putWords(b.args[a.params[i].word:], c.hex(s), a.params[i].bits) })
	}
	return b
}

// putWords writes k modulo 2^bits to the words of dst.
func putWords(dst []uint64, k *big.Int, bits int) {
	n := (bits + 63) / 64
	for i := range n {
		dst[i] = bigLimb(k, i)
	}
	dst[n-1] &= lastMask(bits)
}
