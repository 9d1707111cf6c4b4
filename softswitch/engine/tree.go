package engine

// tree is an expression in a form that can be lowered to instructions: the same value,
// modulo 2^64, as the closure that stands beside it. What has no form of its own is a leaf
// that calls its closure.
type tree struct {
	kind treeKind
	op   opcode // of operations and comparisons
	l, r *tree
	cond *tree  // of a choice
	k    uint64 // of a constant
	word int    // of a field, or of an action parameter
	num  wordFn // of a called number
	yes  boolFn // of a called condition
}

type treeKind uint8

const (
	// Numbers.
	treeConst treeKind = iota
	treeWord
	treeParam
	treeOp     // l op r
	treeChoose // cond ? l : r
	treeBool   // cond as 0 or 1
	treeNumber // a call
	// Conditions.
	treeTrue // k is not 0
	treeCompare
	treeAnd
	treeOr
	treeNot
	treeTest // a call
)

// form is the tree of a number.
func (e *dexpr) form() *tree {
	switch {
	case e.konst != nil:
		return &tree{kind: treeConst, k: lowWord(e.konst)}
	case e.word >= 0:
		return &tree{kind: treeWord, word: e.word}
	case e.param > 0:
		return &tree{kind: treeParam, word: e.param - 1}
	case e.tree != nil:
		return e.tree
	}
	return &tree{kind: treeNumber, num: e.m}
}

// operation is the tree of an operation on two numbers.
func operation(op opcode, l, r *dexpr) *tree {
	return &tree{kind: treeOp, op: op, l: l.form(), r: r.form()}
}

// condition is a compiled condition in both forms.
type condition struct {
	f    boolFn
	tree *tree
}

// form is the tree of a condition.
func (c condition) form() *tree {
	if c.tree != nil {
		return c.tree
	}
	return &tree{kind: treeTest, yes: c.f}
}

// called is a condition that has no tree but a call.
func called(f boolFn) condition { return condition{f: f} }

// comparison gives a comparison a tree where it is one of unsigned words.
func comparison(op string, l, r *dexpr) condition {
	c := condition{f: compareOp(op, l, r)}
	eq := op == "==" || op == "!="
	if l.fitsU64() && r.fitsU64() || eq && l.fitsI64() && r.fitsI64() {
		code := map[string]opcode{"==": opJumpEQ, "!=": opJumpNE, "<": opJumpLT, "<=": opJumpLE, ">": opJumpGT, ">=": opJumpGE}[op]
		c.tree = &tree{kind: treeCompare, op: code, l: l.form(), r: r.form()}
	}
	return c
}

// nonzero is "differs from 0".
func nonzero(e *dexpr) condition {
	c := condition{f: truth(e)}
	switch {
	case e.tree != nil && e.tree.kind == treeBool:
		c.tree = e.tree.cond
	case e.fitsU64() || e.fitsI64():
		c.tree = &tree{kind: treeCompare, op: opJumpNE, l: e.form(), r: &tree{kind: treeConst}}
	}
	return c
}
