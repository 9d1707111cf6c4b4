package engine

import (
	"slices"

	"github.com/headgate/headgate/softswitch/engine/expr"
)

// lower lowers both pipelines and all actions. Their code comes after the parser's.
func (c *compiler) lower() {
	for _, act := range c.actions {
		act.pc = uint32(len(c.asm.list))
		c.asm.body(act)
		c.asm.emit(instr{op: opRet})
	}
	for i := range c.passes {
		c.passes[i].pc = c.asm.node(c.passes[i].first)
	}
}

// Emit lowers one statement.
type Emit func(a *assembler)

// fragment lowers statements that exec runs outside of the pipelines, and returns the first
// instruction.
func (c *compiler) fragment(list ...Emit) uint32 {
	pc := uint32(len(c.asm.list))
	c.code.fragments = append(c.code.fragments, pc)
	c.asm.statements(list)
	c.asm.emit(instr{op: opEnd})
	return pc
}

func (a *assembler) statements(list []Emit) {
	for _, emit := range list {
		mark := a.temp
		emit(a)
		a.temp = mark
	}
}

// located is a number that is used outside of the pipelines. The code at pc puts it into word. If
// pc is 0 the number is there already.
type located struct{ pc, word uint32 }

func (v located) get(p *Packet) uint64 {
	if v.pc != 0 {
		p.exec(v.pc)
	}
	return p.W[v.word]
}

// locate lowers a number. A number that does not fit in a word becomes the highest word.
func (c *compiler) locate(n *expr.Node) (v located) {
	v.pc = c.fragment(func(a *assembler) { v.word = a.index(n) })
	if int(v.pc) == len(c.asm.list)-1 {
		v.pc = 0
	}
	return v
}

// predicate is a condition that is used outside of the pipelines. The zero value always holds.
type predicate struct {
	pc    uint32  // start of the code, whose result is non-zero if the condition holds
	tests []instr // its jumps, opJumpEQK and opJumpNEK; the condition holds if none is taken; nil if it has other code
}

// predicate lowers a condition.
func (c *compiler) predicate(n *expr.Node) predicate {
	pc := uint32(len(c.asm.list))
	c.code.fragments = append(c.code.fragments, pc)
	var no label
	c.asm.branch(n, false, &no)
	c.asm.emit(instr{op: opEnd, k: 1})
	c.asm.place(&no)
	c.asm.emit(instr{op: opEnd})
	k := predicate{pc: pc, tests: slices.Clone(c.asm.list[pc : len(c.asm.list)-2])}
	if slices.ContainsFunc(k.tests, func(i instr) bool { return i.op != opJumpEQK && i.op != opJumpNEK || i.d != no.pc }) {
		k.tests = nil
	}
	return k
}

func (k *predicate) holds(p *Packet) bool {
	if len(k.tests) == 0 {
		return k.pc == 0 || p.exec(k.pc) != 0
	}
	for i := range k.tests {
		if t := &k.tests[i]; (p.W[t.a] == t.k) == (t.op == opJumpEQK) {
			return false
		}
	}
	return true
}

// body emits an action's statements, with the action's register lock held.
func (a *assembler) body(act *action) {
	a.exits = false
	if act.lock >= 0 {
		a.emit(instr{op: opLock, a: uint32(act.lock)})
	}
	mark := a.temp
	if act.loops { // the first temporary counts jumps backwards
		a.emit(instr{op: opConst, d: a.newTemps(1)})
	}
	a.labels = make([]label, len(act.body)+1)
	for i := range act.body {
		a.place(&a.labels[i])
		a.statements(act.body[i : i+1])
	}
	a.place(&a.labels[len(act.body)])
	a.temp = mark
	if act.lock >= 0 {
		a.emit(instr{op: opUnlock, a: uint32(act.lock)})
	}
}

// node emits a node and all nodes that follow it, unless it was emitted before, and returns the
// node's first instruction. A pipeline has no cycles.
func (a *assembler) node(n *node) uint32 {
	if n == nil {
		return 0
	}
	todo := []*node{n}
	for len(todo) > 0 {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if next.label.placed {
			continue
		}
		for next != nil && !next.label.placed {
			a.place(&next.label)
			var others []*node
			next, others = a.step(next)
			todo = append(todo, others...)
		}
		if next == nil {
			a.emit(instr{op: opEnd})
		} else {
			a.emit(instr{op: opJump, d: next.label.pc})
		}
	}
	return n.label.pc
}

// step emits one node. It returns the node to emit next, so that the code falls through to it, and
// the other nodes that must still be emitted.
func (a *assembler) step(n *node) (next *node, others []*node) {
	switch {
	case n.call != nil:
		if b := n.call; b.act != nil && !b.act.noop() {
			if len(b.args) > 0 {
				a.emit(instr{op: opArgs, a: uint32(len(a.code.args))})
				a.code.args = append(a.code.args, b.args)
			}
			a.args = b.args
			a.body(b.act)
			a.args = nil
			if a.exits {
				a.emit(instr{op: opLeave})
			}
		}
		return n.next, nil
	case n.table != nil:
		a.emit(instr{op: opTable, a: uint32(n.table.index)})
		for _, f := range n.table.followers() {
			if f != nil {
				others = append(others, f)
			}
		}
		if len(others) == 0 {
			return nil, nil
		}
		return others[0], others[1:]
	}
	no := &label{placed: true} // instruction 0 ends the pipeline
	if n.no != nil {
		no, others = &n.no.label, []*node{n.no}
	}
	mark := a.temp
	if n.lock >= 0 {
		t := a.newTemps(1)
		a.emit(instr{op: opLock, a: uint32(n.lock)})
		a.value(expr.NewNumber(n.cond), t, 1)
		a.emit(instr{op: opUnlock, a: uint32(n.lock)})
		a.jump(instr{op: opJumpEQ + jumpToK, a: t}, no)
	} else {
		a.branch(n.cond, false, no)
	}
	a.temp = mark
	return n.yes, others
}
