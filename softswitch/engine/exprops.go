package engine

import (
	"math/big"
)

// operator compiles one operator of an expression.
func (c *compiler) operator(x *jsonExpr) expr {
	switch x.Op {
	case "?":
		return c.ternary(x)
	case "==", "!=":
		l, r := c.operand(x.Left), c.operand(x.Right)
		return expr{kind: xBool, bool: c.equal(l, r, x.Op == "!=")}
	case ">", "<", ">=", "<=":
		l, r := c.dataOperand(x.Left), c.dataOperand(x.Right)
		return expr{kind: xBool, bool: comparison(x.Op, l, r)}
	case "and", "or":
		l, r := c.boolOperand(x.Left), c.boolOperand(x.Right)
		a, b, t := l.f, r.f, &tree{kind: treeAnd, l: l.form(), r: r.form()}
		if x.Op == "and" {
			return expr{kind: xBool, bool: condition{func(p *Packet) bool { return a(p) && b(p) }, t}}
		}
		t.kind = treeOr
		return expr{kind: xBool, bool: condition{func(p *Packet) bool { return a(p) || b(p) }, t}}
	case "not":
		r := c.boolOperand(x.Right)
		f := r.f
		return expr{kind: xBool, bool: condition{func(p *Packet) bool { return !f(p) }, &tree{kind: treeNot, l: r.form()}}}
	case "d2b":
		return expr{kind: xBool, bool: nonzero(c.dataOperand(x.Right))}
	case "b2d":
		return expr{kind: xData, data: boolData(c.boolOperand(x.Right))}
	case "valid":
		return expr{kind: xBool, bool: validity(c.want(c.operand(x.Right), xHeader).head)}
	case "valid_union":
		u := c.want(c.operand(x.Right), xUnion).union
		return expr{kind: xBool, bool: called(func(p *Packet) bool { return p.validMember(u.at(p)) != nil })}
	case "dereference_header_stack", "dereference_stack":
		return c.derefStack(x)
	case "dereference_union_stack":
		s := c.want(c.operand(x.Left), xUnionStack).stack
		at := index(c.dataOperand(x.Right), len(s.unions))
		return expr{kind: xUnion, union: &uexpr{typ: s.utyp, at: func(p *Packet) *union {
			if i := at(p); i >= 0 {
				return s.unions[i]
			}
			return nil
		}}}
	case "last_stack_index", "size_stack":
		s := c.operand(x.Right)
		if s.stack == nil {
			c.fail("operator %q wants a header stack", x.Op)
		}
		w, d := s.stack.next, int64(0)
		if x.Op == "last_stack_index" {
			d = 1
		}
		return expr{kind: xData, data: &dexpr{lo: big.NewInt(-d), hi: big.NewInt(int64(s.stack.size()) - d), word: -1,
			m: func(p *Packet) uint64 { return p.w[w] - uint64(d) }}}
	case "access_field":
		return c.accessField(c.want(c.operand(x.Left), xHeader).head, c.integer(x.Right))
	case "access_union_header":
		return c.accessUnion(c.want(c.operand(x.Left), xUnion).union, c.integer(x.Right))
	case "~":
		return expr{kind: xData, data: not(c.dataOperand(x.Right))}
	}
	var l *dexpr
	if isNull(x.Left) && (x.Op == "+" || x.Op == "-") {
		l = constant(new(big.Int))
	} else {
		l = c.dataOperand(x.Left)
	}
	return expr{kind: xData, data: c.arith(x.Op, l, c.dataOperand(x.Right))}
}

func (c *compiler) derefStack(x *jsonExpr) expr {
	s := c.want(c.operand(x.Left), xStack).stack
	i := c.dataOperand(x.Right)
	if i.konst != nil && i.konst.IsInt64() && i.konst.Sign() >= 0 && i.konst.Int64() < int64(len(s.elems)) {
		return expr{kind: xHeader, head: fixedHeader(s.elems[i.konst.Int64()])}
	}
	at := index(i, len(s.elems))
	return expr{kind: xHeader, head: &hexpr{typ: s.typ, at: func(p *Packet) *header {
		if i := at(p); i >= 0 {
			return s.elems[i]
		}
		return nil
	}}}
}

func (c *compiler) accessUnion(u *uexpr, i int) expr {
	if i < 0 || i >= len(u.typ.Headers) {
		c.fail("header union type %q has no member %d", u.typ.Name, i)
	}
	if u.fixed != nil {
		return expr{kind: xHeader, head: fixedHeader(u.fixed.elems[i])}
	}
	return expr{kind: xHeader, head: &hexpr{typ: c.layout.types[u.typ.Headers[i][1]], at: func(p *Packet) *header {
		if x := u.at(p); x != nil {
			return x.elems[i]
		}
		return nil
	}}}
}

// index evaluates an index; out of [0, n) it is -1.
func index(e *dexpr, n int) func(p *Packet) int {
	m := e.m
	switch {
	case e.word >= 0:
		w := e.word
		return func(p *Packet) int {
			if i := p.w[w]; i < uint64(n) {
				return int(i)
			}
			return -1
		}
	case e.fitsU64() || e.fitsI64():
		return func(p *Packet) int {
			if i := m(p); i < uint64(n) {
				return int(i)
			}
			return -1
		}
	}
	ex := e.exact()
	return func(p *Packet) int {
		z := p.bigTemp()
		defer p.bigDone()
		ex(p, z)
		if z.IsUint64() && z.Uint64() < uint64(n) {
			return int(z.Uint64())
		}
		return -1
	}
}

// truth is "differs from 0".
func truth(e *dexpr) boolFn {
	if e.bool != nil {
		return e.bool
	}
	if e.word >= 0 {
		w := e.word
		return func(p *Packet) bool { return p.w[w] != 0 }
	}
	if e.fitsU64() || e.fitsI64() {
		m := e.m
		return func(p *Packet) bool { return m(p) != 0 }
	}
	ex := e.exact()
	return func(p *Packet) bool {
		z := p.bigTemp()
		ex(p, z)
		s := z.Sign()
		p.bigDone()
		return s != 0
	}
}

func (c *compiler) ternary(x *jsonExpr) expr {
	when := c.boolOperand(x.Cond)
	cond := when.f
	l, r := c.operand(x.Left), c.operand(x.Right)
	if l.kind != r.kind {
		c.fail("the two results of ? are of types %v and %v", l.kind, r.kind)
	}
	switch l.kind {
	case xBool:
		a, b := l.bool.f, r.bool.f
		return expr{kind: xBool, bool: called(func(p *Packet) bool {
			if cond(p) {
				return a(p)
			}
			return b(p)
		})}
	case xHeader:
		if l.head.typ != r.head.typ {
			c.fail("the two results of ? are headers of types %q and %q", l.head.typ.name, r.head.typ.name)
		}
		a, b := l.head.at, r.head.at
		return expr{kind: xHeader, head: &hexpr{typ: l.head.typ, at: func(p *Packet) *header {
			if cond(p) {
				return a(p)
			}
			return b(p)
		}}}
	case xData:
	default:
		c.fail("the results of ? are of type %v, want data, bool or header", l.kind)
	}
	a, b := l.data, r.data
	e := &dexpr{word: -1, tree: &tree{kind: treeChoose, cond: when.form(), l: a.form(), r: b.form()}}
	if a.lo != nil && b.lo != nil {
		e.lo = minBig(a.lo, b.lo)
	}
	if a.hi != nil && b.hi != nil {
		e.hi = maxBig(a.hi, b.hi)
	}
	am, bm := a.m, b.m
	e.m = func(p *Packet) uint64 {
		if cond(p) {
			return am(p)
		}
		return bm(p)
	}
	if al, bl := a.limbs(), b.limbs(); al != nil && bl != nil {
		e.limb = func(p *Packet, k int) uint64 {
			if cond(p) {
				return al(p, k)
			}
			return bl(p, k)
		}
	}
	ax, bx := a.exact(), b.exact()
	e.big = func(p *Packet, z *big.Int) {
		if cond(p) {
			ax(p, z)
		} else {
			bx(p, z)
		}
	}
	return expr{kind: xData, data: e}
}

func minBig(a, b *big.Int) *big.Int {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

func maxBig(a, b *big.Int) *big.Int {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

// equal compiles == and !=, which compare data, truth values, headers and unions.
func (c *compiler) equal(l, r expr, negate bool) condition {
	if l.kind != r.kind {
		c.fail("operands of == or != are of types %v and %v", l.kind, r.kind)
	}
	switch l.kind {
	case xData:
		if negate {
			return comparison("!=", l.data, r.data)
		}
		return comparison("==", l.data, r.data)
	case xBool:
		a, b := l.bool.f, r.bool.f
		return called(func(p *Packet) bool { return a(p) == b(p) != negate })
	case xHeader:
		a, b := l.head.at, r.head.at
		return called(func(p *Packet) bool { return p.sameHeader(a(p), b(p)) != negate })
	case xUnion:
		a, b := l.union.at, r.union.at
		return called(func(p *Packet) bool { return p.sameUnion(a(p), b(p)) != negate })
	}
	c.fail("== and != do not compare %v", l.kind)
	return condition{}
}

// compareOp compiles a comparison of data.
func compareOp(op string, l, r *dexpr) boolFn {
	a, b := l.m, r.m
	eq := op == "==" || op == "!="
	if l.word >= 0 && r.konst != nil && r.fitsU64() {
		return compareWordConst(op, l.word, r.konst.Uint64())
	}
	if l.word >= 0 && r.word >= 0 {
		if f := compareWords(op, l.word, r.word); f != nil {
			return f
		}
	}
	switch {
	case l.fitsU64() && r.fitsU64(), eq && l.fitsI64() && r.fitsI64():
		switch op {
		case "==":
			return func(p *Packet) bool { return a(p) == b(p) }
		case "!=":
			return func(p *Packet) bool { return a(p) != b(p) }
		case "<":
			return func(p *Packet) bool { return a(p) < b(p) }
		case "<=":
			return func(p *Packet) bool { return a(p) <= b(p) }
		case ">":
			return func(p *Packet) bool { return a(p) > b(p) }
		default:
			return func(p *Packet) bool { return a(p) >= b(p) }
		}
	case l.fitsI64() && r.fitsI64():
		switch op {
		case "<":
			return func(p *Packet) bool { return int64(a(p)) < int64(b(p)) }
		case "<=":
			return func(p *Packet) bool { return int64(a(p)) <= int64(b(p)) }
		case ">":
			return func(p *Packet) bool { return int64(a(p)) > int64(b(p)) }
		default:
			return func(p *Packet) bool { return int64(a(p)) >= int64(b(p)) }
		}
	}
	return compareWide(op, l, r)
}

// compareWords compares two fields; nil for comparisons that are not made often.
func compareWords(op string, v, w int) boolFn {
	switch op {
	case "==":
		return func(p *Packet) bool { return p.w[v] == p.w[w] }
	case "!=":
		return func(p *Packet) bool { return p.w[v] != p.w[w] }
	case "<":
		return func(p *Packet) bool { return p.w[v] < p.w[w] }
	case ">":
		return func(p *Packet) bool { return p.w[v] > p.w[w] }
	}
	return nil
}

func compareWordConst(op string, w int, k uint64) boolFn {
	switch op {
	case "==":
		return func(p *Packet) bool { return p.w[w] == k }
	case "!=":
		return func(p *Packet) bool { return p.w[w] != k }
	case "<":
		return func(p *Packet) bool { return p.w[w] < k }
	case "<=":
		return func(p *Packet) bool { return p.w[w] <= k }
	case ">":
		return func(p *Packet) bool { return p.w[w] > k }
	default:
		return func(p *Packet) bool { return p.w[w] >= k }
	}
}

// compareWide compares values that do not fit a word, limb by limb where possible.
func compareWide(op string, l, r *dexpr) boolFn {
	al, bl := l.limbs(), r.limbs()
	var cmp func(p *Packet) int
	if n := max(l.maxBits(), r.maxBits()); al != nil && bl != nil && l.maxBits() >= 0 && r.maxBits() >= 0 {
		top := n/64 + 1 // this limb is all sign
		cmp = func(p *Packet) int {
			if x, y := int64(al(p, top)), int64(bl(p, top)); x != y {
				if x < y {
					return -1
				}
				return 1
			}
			for k := top - 1; k >= 0; k-- {
				if x, y := al(p, k), bl(p, k); x != y {
					if x < y {
						return -1
					}
					return 1
				}
			}
			return 0
		}
	} else {
		ax, bx := l.exact(), r.exact()
		cmp = func(p *Packet) int {
			x := p.bigTemp()
			ax(p, x)
			y := p.bigTemp()
			bx(p, y)
			d := x.Cmp(y)
			p.bigDone()
			p.bigDone()
			return d
		}
	}
	switch op {
	case "==":
		return func(p *Packet) bool { return cmp(p) == 0 }
	case "!=":
		return func(p *Packet) bool { return cmp(p) != 0 }
	case "<":
		return func(p *Packet) bool { return cmp(p) < 0 }
	case "<=":
		return func(p *Packet) bool { return cmp(p) <= 0 }
	case ">":
		return func(p *Packet) bool { return cmp(p) > 0 }
	default:
		return func(p *Packet) bool { return cmp(p) >= 0 }
	}
}
