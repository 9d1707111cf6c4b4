package engine

import "math/bits"

// label is a place in the code, and the jumps to it that await it.
type label struct {
	pc     uint32
	placed bool
	refs   []int
}

// assembler lowers pipelines and actions.
type assembler struct {
	*code
	bits []uint64 // by word: what may be set in it; all where the word is beyond
	base uint32   // word of the first temporary
	temp uint32   // temporaries in use
	args []uint64 // arguments of the action being lowered, where they are known
}

func (a *assembler) emit(i instr) { a.list = append(a.list, i) }

// jump emits an instruction whose d is a label.
func (a *assembler) jump(i instr, l *label) {
	if l.placed {
		i.d = l.pc
	} else {
		l.refs = append(l.refs, len(a.list))
	}
	a.emit(i)
}

func (a *assembler) place(l *label) {
	l.pc, l.placed = uint32(len(a.list)), true
	for _, i := range l.refs {
		a.list[i].d = l.pc
	}
	l.refs = nil
}

func (a *assembler) newTemp() uint32 {
	a.temp++
	a.temps = max(a.temps, int(a.temp))
	return a.base + a.temp - 1
}

// constant reports the value of a tree that has one when it is lowered.
func (a *assembler) constant(t *tree) (uint64, bool) {
	switch {
	case t.kind == treeConst:
		return t.k, true
	case t.kind == treeParam && a.args != nil:
		return a.args[t.word], true
	}
	return 0, false
}

// operand brings a number into a word, of which the other bits than need do not matter.
func (a *assembler) operand(t *tree, need uint64) uint32 {
	if inner, mask := a.peel(t); a.may(inner)&need&^mask == 0 {
		t = inner // the masks change nothing
	}
	if t.kind == treeWord {
		return uint32(t.word)
	}
	d := a.newTemp()
	a.value(t, d, ^uint64(0))
	return d
}

// value emits d = t & mask. d is written last.
func (a *assembler) value(t *tree, d uint32, mask uint64) {
	mark := a.temp
	defer func() { a.temp = mark }()
	t, k := a.peel(t)
	mask &= k
	if k, ok := a.constant(t); ok {
		a.emit(instr{op: opConst, d: d, k: k & mask})
		return
	}
	switch t.kind {
	case treeWord:
		a.emit(instr{op: opMove, d: d, a: uint32(t.word), mask: mask})
	case treeParam:
		a.emit(instr{op: opParam, d: d, a: uint32(t.word), mask: mask})
	case treeOp:
		a.operation(t, d, mask)
	case treeNumber:
		a.emit(instr{op: opWord, d: d, a: uint32(len(a.words)), mask: mask})
		a.words = append(a.words, t.num)
	case treeChoose, treeBool:
		l, r := t.l, t.r
		if t.kind == treeBool {
			l, r = &tree{kind: treeConst, k: 1}, &tree{kind: treeConst}
		}
		var no, end label
		a.branch(t.cond, false, &no)
		a.value(l, d, mask)
		a.jump(instr{op: opJump}, &end)
		a.place(&no)
		a.value(r, d, mask)
		a.place(&end)
	}
}

func (a *assembler) operation(t *tree, d uint32, mask uint64) {
	l, r := t.l, t.r
	if _, ok := a.constant(l); ok && t.op != opSub && t.op != opShl && t.op != opShr {
		l, r = r, l // the others commute
	}
	k, ok := a.constant(r)
	left, right := ^uint64(0), ^uint64(0) // bits of l and r that matter
	switch {
	case t.op == opAnd || t.op == opOr || t.op == opXor:
		left, right = mask, mask
	case t.op == opAdd || t.op == opSub || t.op == opMul:
		left, right = upTo(mask), upTo(mask)
	case t.op == opShl:
		left = upTo(mask)
	case t.op == opShr && ok:
		left = mask << k
	}
	i := instr{op: t.op, d: d, a: a.operand(l, left), mask: mask}
	if ok {
		i.op, i.k = i.op+arithToK, k
	} else {
		i.b = a.operand(r, right)
	}
	a.emit(i)
}

// upTo is all bits up to the highest of m.
func upTo(m uint64) uint64 { return 1<<bits.Len64(m) - 1 }

// peel takes constant masks off a number.
func (a *assembler) peel(t *tree) (inner *tree, mask uint64) {
	mask = ^uint64(0)
	for t.kind == treeOp && t.op == opAnd {
		if k, ok := a.constant(t.r); ok {
			t, mask = t.l, mask&k
		} else if k, ok := a.constant(t.l); ok {
			t, mask = t.r, mask&k
		} else {
			break
		}
	}
	return t, mask
}

// may is the bits that may be set in a number.
func (a *assembler) may(t *tree) uint64 {
	if k, ok := a.constant(t); ok {
		return k
	}
	switch t.kind {
	case treeWord:
		if t.word < len(a.bits) {
			return a.bits[t.word]
		}
	case treeBool:
		return 1
	case treeChoose:
		return a.may(t.l) | a.may(t.r)
	case treeOp:
		l, r := a.may(t.l), a.may(t.r)
		k, ok := a.constant(t.r)
		switch {
		case t.op == opAnd:
			return l & r
		case t.op == opOr || t.op == opXor:
			return l | r
		case t.op == opMin:
			return upTo(min(l, r))
		case t.op == opShr && ok:
			return l >> k
		case t.op == opShl && ok && (l<<k)>>k == l:
			return l << k
		case t.op == opAdd && (l|r)>>63 == 0:
			return upTo(upTo(l) + upTo(r))
		}
	}
	return ^uint64(0)
}

// not is the opposite of a comparison, swapped the same with its sides exchanged.
var (
	notOf   = map[opcode]opcode{opJumpEQ: opJumpNE, opJumpNE: opJumpEQ, opJumpLT: opJumpGE, opJumpGE: opJumpLT, opJumpGT: opJumpLE, opJumpLE: opJumpGT}
	swapped = map[opcode]opcode{opJumpEQ: opJumpEQ, opJumpNE: opJumpNE, opJumpLT: opJumpGT, opJumpGE: opJumpLE, opJumpGT: opJumpLT, opJumpLE: opJumpGE}
)

// branch jumps to a label if the condition is as wanted.
func (a *assembler) branch(t *tree, want bool, to *label) {
	mark := a.temp
	defer func() { a.temp = mark }()
	switch t.kind {
	case treeTrue:
		if t.k != 0 == want {
			a.jump(instr{op: opJump}, to)
		}
	case treeNot:
		a.branch(t.l, !want, to)
	case treeAnd, treeOr:
		if want != (t.kind == treeAnd) { // one side decides
			a.branch(t.l, want, to)
			a.branch(t.r, want, to)
			return
		}
		var skip label
		a.branch(t.l, !want, &skip)
		a.branch(t.r, want, to)
		a.place(&skip)
	case treeTest:
		op := opJumpIf
		if !want {
			op = opJumpIfNot
		}
		a.jump(instr{op: op, a: uint32(len(a.tests))}, to)
		a.tests = append(a.tests, t.yes)
	case treeCompare:
		op, l, r := t.op, t.l, t.r
		if !want {
			op = notOf[op]
		}
		if _, ok := a.constant(l); ok {
			op, l, r = swapped[op], r, l
		}
		i := instr{op: op, a: a.operand(l, ^uint64(0))}
		if k, ok := a.constant(r); ok {
			i.op, i.k = i.op+jumpToK, k
		} else {
			i.b = a.operand(r, ^uint64(0))
		}
		a.jump(i, to)
	}
}

// statement is one primitive of an action in a form that can be lowered.
type statement struct {
	kind  statementKind
	word  int // target of a set or register read
	mask  uint64
	value *tree
	index *tree
	array int // register or counter
	cond  *tree
	to    int  // of a jump; it is taken when cond is nil or false
	call  opFn // nil does nothing
	exits bool // may ask to leave the pipeline
}

type statementKind uint8

const (
	doCall statementKind = iota
	doSet
	doRead  // set to a register's cell, unless the index is beyond its end
	doWrite // a register's cell
	doCount
	doJump
)

// body emits an action's primitives under the locks of its registers.
func (a *assembler) body(act *action) (exits bool) {
	if act.body == nil {
		a.call(act.run)
		return true
	}
	if act.anew {
		a.call((*Packet).forget)
	}
	if act.lock >= 0 {
		a.emit(instr{op: opLock, a: uint32(act.lock)})
	}
	labels := make([]label, len(act.body)+1)
	for i := range act.body {
		a.place(&labels[i])
		s := &act.body[i]
		if s.kind == doJump {
			if s.cond == nil {
				a.jump(instr{op: opJump}, &labels[s.to])
			} else {
				a.branch(s.cond, false, &labels[s.to])
			}
			continue
		}
		a.statement(s)
		exits = exits || s.exits
	}
	a.place(&labels[len(act.body)])
	if act.lock >= 0 {
		a.emit(instr{op: opUnlock, a: uint32(act.lock)})
	}
	return exits
}

func (a *assembler) call(f opFn) {
	a.emit(instr{op: opCall, a: uint32(len(a.ops))})
	a.ops = append(a.ops, f)
}

func (a *assembler) statement(s *statement) {
	mark := a.temp
	defer func() { a.temp = mark }()
	switch s.kind {
	case doCall:
		if s.call != nil {
			a.call(s.call)
		}
	case doSet:
		a.value(s.value, uint32(s.word), s.mask)
	case doRead:
		a.emit(instr{op: opRegRead, a: uint32(s.array), b: a.operand(s.index, ^uint64(0)), d: uint32(s.word), mask: s.mask})
	case doWrite:
		// The value is read behind the index and before the cell changes.
		b := a.operand(s.index, ^uint64(0))
		a.emit(instr{op: opRegWrite, a: uint32(s.array), b: b, d: a.operand(s.value, s.mask), mask: s.mask})
	case doCount:
		a.emit(instr{op: opCount, a: uint32(s.array), b: a.operand(s.index, ^uint64(0))})
	}
}

// lower turns both pipelines and all actions of tables into code.
func (c *compiler) lower() {
	a := &assembler{code: &c.code, base: uint32(c.layout.words), bits: c.layout.bits()}
	a.emit(instr{op: opEnd})
	for _, act := range sortedActions(c.actions) {
		act.pc = uint32(len(a.list))
		a.body(act)
		a.emit(instr{op: opRet})
	}
	c.code.ingress = a.node(c.Program.ingress)
	c.code.egress = a.node(c.Program.egress)
}

// node emits a node and what follows it, unless it has been emitted, and returns where it
// stands. A pipeline has no cycles.
func (a *assembler) node(n *node) uint32 {
	if n == nil {
		return 0
	}
	if n.label.placed {
		return n.label.pc
	}
	type pending struct{ n *node }
	todo := []pending{{n}}
	for len(todo) > 0 {
		next := todo[len(todo)-1].n
		todo = todo[:len(todo)-1]
		for next != nil && !next.label.placed {
			a.place(&next.label)
			next.pc = next.label.pc
			var others []*node
			next, others = a.step(next)
			for _, o := range others {
				todo = append(todo, pending{o})
			}
		}
		if next == nil {
			a.emit(instr{op: opEnd})
		} else {
			a.emit(instr{op: opJump, d: next.label.pc})
		}
	}
	return n.label.pc
}

// step emits one node and returns the one to fall through to, and others to be emitted.
func (a *assembler) step(n *node) (next *node, others []*node) {
	switch {
	case n.table != nil && n.call == nil:
		a.emit(instr{op: opTable, a: uint32(n.table.index)})
		all := n.table.followers()
		if len(all) == 0 {
			return nil, nil
		}
		return all[0], all[1:]
	case n.call != nil:
		if b := n.call; b.act != nil && !b.act.noop {
			a.args = b.args
			if b.act.body == nil || len(b.args) > 0 {
				a.emit(instr{op: opArgs, a: uint32(len(a.code.args))})
				a.code.args = append(a.code.args, b.args)
			}
			if a.body(b.act) {
				a.emit(instr{op: opLeave})
			}
			a.args = nil
		}
		return n.next, nil
	}
	if n.no == nil {
		end := label{placed: true} // instruction 0 ends the pipeline
		a.branch(n.cond, false, &end)
	} else {
		a.branch(n.cond, false, &n.no.label)
		others = []*node{n.no}
	}
	return n.yes, others
}

// followers are the nodes that a table may lead to.
func (t *tableSpec) followers() (list []*node) {
	add := func(n *node) {
		if n != nil {
			list = append(list, n)
		}
	}
	add(t.hit)
	add(t.miss)
	add(t.base)
	for _, name := range t.names {
		add(t.nexts[t.actions[name]])
	}
	return list
}
