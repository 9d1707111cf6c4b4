package engine

import (
	"bytes"
	"encoding/json"
	"math/big"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// maxDepth bounds the nesting of expressions.
const maxDepth = 200

// expression compiles an expression. A missing expression has the type Nothing.
func (c *compiler) expression(j *bmv2json.Value) *expr.Node {
	if j == nil || j.Type == "" && bmv2json.IsNull(j.Value) {
		return &expr.Node{}
	}
	c.depth++
	if c.depth > maxDepth {
		c.Fail("expression is nested more than %d deep", maxDepth)
	}
	defer func() { c.depth-- }()
	switch j.Type {
	case "expression":
		// p4c wraps expressions: the value is either an operator or again a typed value.
		var n bmv2json.Node
		c.Decode(j.Value, &n)
		if n.Type != "" {
			return c.expression(&n.Value)
		}
		return c.operator(&n.Expr)
	case "header":
		h := c.headerNamed(c.Str(j.Value))
		c.usesHeader(h)
		return expr.NewHeader(h)
	case "field":
		v := c.Pair(j.Value, "[header, field]")
		if bytes.HasPrefix(v[0], []byte("{")) {
			return c.computedField(v)
		}
		return expr.NewField(c.fieldNamed(c.Str(v[0]), c.Str(v[1])))
	case "bool":
		var b bool
		c.Decode(j.Value, &b)
		return expr.NewTruth(b)
	case "hexstr":
		return expr.NewConst(c.Hex(c.Str(j.Value)))
	case "local", "runtime_data":
		return c.param(c.Int(j.Value))
	case "register":
		v := c.Pair(j.Value, "[register, index]")
		r := c.register(c.Str(v[0]))
		return expr.NewCell(r.index, r.bits, c.operand(v[1], expr.Data))
	case "header_stack":
		return expr.NewStack(c.stackNamed(c.Str(j.Value)))
	case "header_union":
		return expr.NewUnion(named(c, "header union", c.layout.Unions, c.Str(j.Value)))
	case "header_union_stack":
		return expr.NewStack(c.unionStackNamed(c.Str(j.Value)))
	case "stack_field":
		name, field := c.Names(j.Value, "[stack, field]")
		s := c.stackNamed(name)
		last := expr.NewElement(s, expr.NewNext(s, 1))
		if _, ok := s.Type.Field(field); !ok && field == "last" {
			return last // p4c writes a whole header like this; BMv2 reads it as a field and aborts
		}
		return c.member(last, c.fieldIndex(s.Type, field))
	}
	c.Fail("unknown type %q in an expression", j.Type)
	return nil
}

// computedField compiles [operator, field]. p4c writes that for isValid() of a header that is
// chosen at run time; BMv2 does not load such programs. The operator's fields count as read even
// in an assignment's target.
func (c *compiler) computedField(v []json.RawMessage) *expr.Node {
	var x bmv2json.Expr
	c.Decode(v[0], &x)
	writing := c.writing
	c.writing = false
	h := c.want(c.operator(&x), expr.Header)
	c.writing = writing
	name := c.Str(v[1])
	if name == "$valid$" {
		return expr.NewNumber(expr.NewIsValid(h))
	}
	return c.member(h, c.fieldIndex(h.HType, name))
}

func (c *compiler) fieldIndex(t *phv.Type, name string) int {
	i, ok := t.Field(name)
	if !ok {
		c.Fail("header type %q has no field %q", t.Name, name)
	}
	return i
}

// member returns field i of a header.
func (c *compiler) member(h *expr.Node, i int) *expr.Node {
	t := h.HType
	if i == len(t.Fields) { // the hidden field that holds the validity
		return expr.NewNumber(expr.NewIsValid(h))
	}
	if i < 0 || i > len(t.Fields) {
		c.Fail("header type %q has no field %d", t.Name, i)
	}
	f := &t.Fields[i]
	if f.Variable && h.Kind != expr.Fixed {
		c.Fail("variable-length field %q of a header chosen at run time cannot be used as a number", f.Name)
	}
	return expr.NewMember(h, f)
}

// param returns parameter i of the action being compiled. In the length expression of a header
// type it returns field i of the header.
func (c *compiler) param(i int) *expr.Node {
	if h := c.locals; h != nil && i >= 0 && i < len(h.Type.Fields) {
		f := &h.Type.Fields[i]
		if f.Bits > 64 {
			c.Fail("length_exp of header type %q cannot use fields of more than 64 bits", h.Type.Name)
		}
		return expr.NewWord(h.Base+f.Word, max(1, f.Bits), false)
	}
	if c.action == nil {
		c.Fail("action parameter %d used outside of an action", i)
	}
	if i < 0 || i >= len(c.action.params) {
		c.Fail("action %q has no parameter %d, it has %d", c.action.name, i, len(c.action.params))
	}
	return expr.NewParam(c.action.params[i].word, c.action.params[i].Bits)
}

func (c *compiler) want(n *expr.Node, t expr.Type) *expr.Node {
	if n.Type != t {
		c.Fail("operand is of type %v, want %v", n.Type, t)
	}
	return n
}

// operand compiles an operand, which must be of type t.
func (c *compiler) operand(raw json.RawMessage, t expr.Type) *expr.Node {
	return c.want(c.anyOperand(raw), t)
}

func (c *compiler) anyOperand(raw json.RawMessage) *expr.Node {
	if bmv2json.IsNull(raw) {
		return &expr.Node{}
	}
	return c.expression(c.Value(raw))
}

// operator reads an operator with its operands.
func (c *compiler) operator(x *bmv2json.Expr) *expr.Node {
	left := func(t expr.Type) *expr.Node { return c.operand(x.Left, t) }
	right := func(t expr.Type) *expr.Node { return c.operand(x.Right, t) }
	switch x.Op {
	case "?":
		return c.choose(c.operand(x.Cond, expr.Bool), c.anyOperand(x.Left), c.anyOperand(x.Right))
	case "==", "!=":
		n := c.equal(c.anyOperand(x.Left), c.anyOperand(x.Right))
		if x.Op == "!=" {
			return expr.NewLogic(expr.Not, n, nil)
		}
		return n
	case ">", "<", ">=", "<=":
		return expr.NewCompare(expr.Relations[x.Op], left(expr.Data), right(expr.Data))
	case "and":
		return expr.NewLogic(expr.And, left(expr.Bool), right(expr.Bool))
	case "or":
		return expr.NewLogic(expr.Or, left(expr.Bool), right(expr.Bool))
	case "not":
		return expr.NewLogic(expr.Not, right(expr.Bool), nil)
	case "d2b":
		return expr.NewIsTrue(right(expr.Data))
	case "b2d":
		return expr.NewNumber(right(expr.Bool))
	case "valid":
		return expr.NewIsValid(right(expr.Header))
	case "valid_union":
		return expr.NewIsValid(right(expr.Union))
	case "dereference_header_stack", "dereference_stack":
		s := left(expr.Stack).Stack
		return expr.NewElement(s, right(expr.Data))
	case "dereference_union_stack":
		s := left(expr.UnionStack).Stack
		return expr.NewElement(s, right(expr.Data))
	case "last_stack_index", "size_stack":
		s := c.anyOperand(x.Right).Stack
		if s == nil {
			c.Fail("operator %q wants a header stack", x.Op)
		}
		if x.Op == "size_stack" {
			return expr.NewNext(s, 0)
		}
		return expr.NewNext(s, 1)
	case "access_field":
		return c.member(left(expr.Header), c.Int(x.Right))
	case "access_union_header":
		u, i := left(expr.Union), c.Int(x.Right)
		if i < 0 || i >= len(u.UType.Headers) {
			c.Fail("header union type %q has no member %d", u.UType.Name, i)
		}
		return expr.NewUnionMember(u, i, c.layout.Types[u.UType.Headers[i][1]])
	case "~": // −x−1
		return expr.NewOp(expr.BitXor, right(expr.Data), expr.NewInt(-1))
	}
	l := expr.NewConst(new(big.Int))
	if !bmv2json.IsNull(x.Left) || x.Op != "+" && x.Op != "-" {
		l = left(expr.Data)
	}
	op, ok := expr.Operators[x.Op]
	if !ok {
		c.Fail("unknown operator %q", x.Op)
	}
	r := right(expr.Data)
	switch op {
	case expr.Wrap, expr.Saturate, expr.SaturateNatural:
		if r.Kind != expr.Const || !r.K.IsInt64() || r.K.Int64() < 1 || r.K.Int64() > bmv2json.MaxBits {
			c.Fail("the width of %s must be a constant from 1 to %d", x.Op, bmv2json.MaxBits)
		}
	}
	return expr.NewOp(op, l, r)
}

// choose returns cond ? l : r.
func (c *compiler) choose(cond, l, r *expr.Node) *expr.Node {
	if l.Type != r.Type {
		c.Fail("the two results of ? are of types %v and %v", l.Type, r.Type)
	}
	switch l.Type {
	case expr.Bool:
		return expr.NewIsTrue(expr.NewChoose(cond, expr.NewNumber(l), expr.NewNumber(r)))
	case expr.Header:
		if l.HType != r.HType {
			c.Fail("the two results of ? are headers of types %q and %q", l.HType.Name, r.HType.Name)
		}
	case expr.Data:
	default:
		c.Fail("the results of ? are of type %v, want data, bool or header", l.Type)
	}
	return expr.NewChoose(cond, l, r)
}

// equal compares data, truth values, headers and unions.
func (c *compiler) equal(l, r *expr.Node) *expr.Node {
	if l.Type != r.Type {
		c.Fail("operands of == or != are of types %v and %v", l.Type, r.Type)
	}
	switch l.Type {
	case expr.Data:
		return expr.NewCompare(expr.EQ, l, r)
	case expr.Bool:
		return expr.NewCompare(expr.EQ, expr.NewNumber(l), expr.NewNumber(r))
	case expr.Header, expr.Union:
		return expr.NewSame(l, r)
	}
	c.Fail("== and != do not compare %v", l.Type)
	return nil
}

// named finds an object by name.
func named[T any](c *compiler, kind string, all map[string]*T, name string) *T {
	x := all[name]
	if x == nil {
		c.Fail("unknown %s %q", kind, name)
	}
	return x
}

func (c *compiler) headerNamed(name string) *phv.Header {
	return named(c, "header", c.layout.Headers, name)
}

func (c *compiler) stackNamed(name string) *phv.Stack {
	return named(c, "header stack", c.layout.Stacks, name)
}

func (c *compiler) unionStackNamed(name string) *phv.Stack {
	return named(c, "header union stack", c.layout.UnionStacks, name)
}

// fieldValue reads the value of a "field": [header, field].
func (c *compiler) fieldValue(raw json.RawMessage) phv.Ref {
	h, f := c.Names(raw, "[header, field]")
	return c.fieldNamed(h, f)
}

// fieldNamed finds a field. Unless it is called within unread, the field counts as read.
func (c *compiler) fieldNamed(h, f string) phv.Ref {
	r, ok := c.layout.Find(h, f)
	if !ok {
		c.headerNamed(h)
		c.Fail("header %q has no field %q", h, f)
	}
	c.uses(r)
	return r
}
