package engine

import (
	"bytes"
	"encoding/json"
	"math/big"
)

// Expressions. BMv2 computes with integers of any size and masks when a value is written
// to a field. Compiled expressions give the same results with machine words: every value
// carries the interval it can lie in, and
//
//   - m computes the value modulo 2^64, which +, −, ×, shifts to the left and the bitwise
//     operations obtain from their operands modulo 2^64, so it is always cheap, and exact
//     where the interval fits 64 bits;
//   - limb, where it is set, gives any 64-bit limb of the value in infinite two's
//     complement, which bitwise operations and constant shifts do without carries;
//   - big computes the exact value and is the slow path, used only where the interval
//     does not fit and a limb function is missing.

type (
	wordFn func(p *Packet) uint64
	boolFn func(p *Packet) bool
	limbFn func(p *Packet, k int) uint64
	bigFn  func(p *Packet, z *big.Int)
	headFn func(p *Packet) *header
)

// dexpr is an expression with an integer value.
type dexpr struct {
	lo, hi *big.Int // inclusive bounds, nil when there is none
	m      wordFn
	limb   limbFn
	big    bigFn
	konst  *big.Int // the value of a constant
	word   int      // word of an unsigned field of up to 64 bits, else -1
	param  int      // 1 + word of an action parameter of up to 64 bits, else 0
	bool   boolFn   // of a truth value as a number, else nil
	tree   *tree    // of an operation that can be lowered, else nil
	wide   *fieldRef
}

var (
	bigZero   = new(big.Int)
	bigMaxU64 = new(big.Int).SetUint64(1<<64 - 1)
	bigMinI64 = big.NewInt(-1 << 63)
	bigMaxI64 = big.NewInt(1<<63 - 1)
)

func (e *dexpr) fitsU64() bool {
	return e.lo != nil && e.hi != nil && e.lo.Sign() >= 0 && e.hi.Cmp(bigMaxU64) <= 0
}

func (e *dexpr) fitsI64() bool {
	return e.lo != nil && e.hi != nil && e.lo.Cmp(bigMinI64) >= 0 && e.hi.Cmp(bigMaxI64) <= 0
}

// within reports whether the value surely lies in [lo, hi].
func (e *dexpr) within(lo, hi *big.Int) bool {
	return e.lo != nil && e.hi != nil && e.lo.Cmp(lo) >= 0 && e.hi.Cmp(hi) <= 0
}

func (e *dexpr) nonNegative() bool { return e.lo != nil && e.lo.Sign() >= 0 }

// limbs returns a limb function if one can be had without the slow path.
func (e *dexpr) limbs() limbFn {
	if e.limb != nil {
		return e.limb
	}
	m := e.m
	switch {
	case e.fitsU64():
		return func(p *Packet, k int) uint64 {
			if k == 0 {
				return m(p)
			}
			return 0
		}
	case e.fitsI64():
		return func(p *Packet, k int) uint64 {
			v := m(p)
			if k == 0 {
				return v
			}
			return uint64(int64(v) >> 63)
		}
	}
	return nil
}

// exact sets z to the exact value.
func (e *dexpr) exact() bigFn {
	m := e.m
	switch {
	case e.konst != nil:
		k := e.konst
		return func(_ *Packet, z *big.Int) { z.Set(k) }
	case e.fitsU64():
		return func(p *Packet, z *big.Int) { z.SetUint64(m(p)) }
	case e.fitsI64():
		return func(p *Packet, z *big.Int) { z.SetInt64(int64(m(p))) }
	}
	return e.big
}

// maxBits bounds the number of bits of the magnitude, -1 without a bound.
func (e *dexpr) maxBits() int {
	if e.lo == nil || e.hi == nil {
		return -1
	}
	return max(e.lo.BitLen(), e.hi.BitLen())
}

func constant(k *big.Int) *dexpr {
	w := lowWord(k)
	return &dexpr{
		lo: k, hi: k, konst: k, word: -1,
		m:    func(*Packet) uint64 { return w },
		limb: func(_ *Packet, i int) uint64 { return bigLimb(k, i) },
		big:  func(_ *Packet, z *big.Int) { z.Set(k) },
	}
}

// lowWord is k modulo 2^64.
func lowWord(k *big.Int) uint64 { return bigLimb(k, 0) }

// bigLimb is 64-bit limb i of k in infinite two's complement.
func bigLimb(k *big.Int, i int) uint64 {
	words := k.Bits()
	at := func(j int) uint64 {
		if j < len(words) {
			return uint64(words[j])
		}
		return 0
	}
	if k.Sign() >= 0 {
		return at(i)
	}
	// −k = ~k + 1; the carry passes every zero limb.
	for j := range i {
		if at(j) != 0 {
			return ^at(i)
		}
	}
	return ^at(i) + 1
}

// xkind is the type of an expression.
type xkind uint8

const (
	xData xkind = iota
	xBool
	xHeader
	xStack
	xUnion
	xUnionStack
	xNone
)

func (k xkind) String() string {
	return [...]string{"data", "bool", "header", "header_stack", "header_union", "header_union_stack", "nothing"}[k]
}

// expr is a compiled expression of any type; the field of its kind is set.
type expr struct {
	kind  xkind
	data  *dexpr
	bool  condition
	head  *hexpr
	stack *stack
	union *uexpr
	lval  *lvalue // for data that can be assigned to
}

// hexpr is an expression that designates a header: a fixed one, or one found while the
// packet is processed (then at may return nil, for an index out of bounds).
type hexpr struct {
	fixed *header
	typ   *headerType
	at    headFn
}

// uexpr designates a header union.
type uexpr struct {
	fixed *union
	typ   *jsonHeaderUnionType
	at    func(p *Packet) *union
}

const maxExprDepth = 200

// expression compiles a type-value object that stands for an expression.
func (c *compiler) expression(j *jsonValue) expr {
	if j == nil || j.Type == "" && isNull(j.Value) {
		return expr{kind: xNone}
	}
	c.depth++
	if c.depth > maxExprDepth {
		c.fail("expression is nested more than %d deep", maxExprDepth)
	}
	defer func() { c.depth-- }()
	switch j.Type {
	case "expression":
		// p4c wraps expressions: the value is either an operator or again a typed value.
		var n jsonNode
		c.decode(j.Value, &n)
		if n.Type != "" {
			return c.expression(&n.jsonValue)
		}
		return c.operator(&n.jsonExpr)
	case "header":
		h := c.headerNamed(c.str(j.Value))
		c.usesHeader(h)
		return expr{kind: xHeader, head: fixedHeader(h)}
	case "field":
		if x, ok := c.computedField(j.Value); ok { // which reads fields even where it is assigned to
			return x
		}
		r := c.fieldValue(j.Value)
		return expr{kind: xData, data: c.loadField(r), lval: &lvalue{ref: &r}}
	case "bool":
		var b bool
		c.decode(j.Value, &b)
		return expr{kind: xBool, bool: always(b)}
	case "hexstr":
		return expr{kind: xData, data: constant(c.hex(c.str(j.Value)))}
	case "local", "runtime_data":
		return expr{kind: xData, data: c.loadParam(c.integer(j.Value))}
	case "register":
		return c.registerRef(j.Value)
	case "header_stack":
		return expr{kind: xStack, stack: c.stackNamed(c.str(j.Value))}
	case "header_union":
		name := c.str(j.Value)
		u := c.layout.unions[name]
		if u == nil {
			c.fail("unknown header union %q", name)
		}
		return expr{kind: xUnion, union: &uexpr{fixed: u, typ: u.typ, at: func(*Packet) *union { return u }}}
	case "header_union_stack":
		name := c.str(j.Value)
		s := c.layout.ustacks[name]
		if s == nil {
			c.fail("unknown header union stack %q", name)
		}
		return expr{kind: xUnionStack, stack: s}
	case "stack_field":
		return c.lastField(j.Value)
	}
	c.fail("unknown type %q in an expression", j.Type)
	return expr{}
}

// computedField compiles [operator, field], which p4c writes for isValid() of a header
// chosen at run time; BMv2 does not load such programs.
func (c *compiler) computedField(raw json.RawMessage) (expr, bool) {
	var v []json.RawMessage
	c.decode(raw, &v)
	if len(v) != 2 || !bytes.HasPrefix(bytes.TrimSpace(v[0]), []byte("{")) {
		return expr{}, false
	}
	var x jsonExpr
	c.decode(v[0], &x)
	writing := c.writing
	c.writing = false
	h := c.want(c.operator(&x), xHeader).head
	c.writing = writing
	name := c.str(v[1])
	if name == "$valid$" {
		return expr{kind: xData, data: boolData(validity(h))}, true
	}
	i, ok := h.typ.byName[name]
	if !ok {
		c.fail("header type %q has no field %q", h.typ.name, name)
	}
	return c.accessField(h, i), true
}

func fixedHeader(h *header) *hexpr {
	return &hexpr{fixed: h, typ: h.typ, at: func(*Packet) *header { return h }}
}

// operand compiles the raw JSON of an operand.
func (c *compiler) operand(raw json.RawMessage) expr {
	if isNull(raw) {
		return expr{kind: xNone}
	}
	var j jsonValue
	c.decode(raw, &j)
	return c.expression(&j)
}

func (c *compiler) want(x expr, k xkind) expr {
	if x.kind != k {
		c.fail("operand is of type %v, want %v", x.kind, k)
	}
	return x
}

func (c *compiler) dataOperand(raw json.RawMessage) *dexpr { return c.want(c.operand(raw), xData).data }
func (c *compiler) boolOperand(raw json.RawMessage) condition {
	return c.want(c.operand(raw), xBool).bool
}

func validity(h *hexpr) condition {
	if h.fixed != nil {
		if h.fixed.metadata {
			return always(true)
		}
		w := h.fixed.valid
		return condition{
			f:    func(p *Packet) bool { return p.w[w] != 0 },
			tree: &tree{kind: treeCompare, op: opJumpNE, l: &tree{kind: treeWord, word: w}, r: &tree{kind: treeConst}},
		}
	}
	at := h.at
	return called(func(p *Packet) bool {
		x := at(p)
		return x != nil && p.isValid(x)
	})
}

// always is a constant condition.
func always(b bool) condition {
	t := &tree{kind: treeTrue}
	if b {
		t.k = 1
	}
	return condition{func(*Packet) bool { return b }, t}
}

// boolData is a truth value as a number, 0 or 1.
func boolData(b condition) *dexpr {
	f := b.f
	return &dexpr{lo: bigZero, hi: big.NewInt(1), word: -1, bool: f, tree: &tree{kind: treeBool, cond: b.form()}, m: func(p *Packet) uint64 {
		if f(p) {
			return 1
		}
		return 0
	}}
}
