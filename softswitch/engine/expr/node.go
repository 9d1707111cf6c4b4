// Package expr holds the expressions of a program as one typed tree. Its evaluator computes them
// with integers of any size, as BMv2 does. The engine lowers expressions that fit 64-bit words to
// instructions; the evaluator computes the others, and is the reference for the engine's tests.
// Start reading at Node.
package expr

import (
	"math/big"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// Type is the type of an expression.
type Type uint8

// The types of expressions.
const (
	Nothing Type = iota
	Data
	Bool
	Header
	Union
	Stack
	UnionStack
)

func (t Type) String() string {
	return [...]string{"nothing", "data", "bool", "header", "header_union", "header_stack", "header_union_stack"}[t]
}

// Kind is the kind of a node.
type Kind uint8

// The kinds of nodes. Each comment names the attributes of a node of that kind.
const (
	// Data.
	Const    Kind = iota // K
	Field                // Word, Width, Signed: a field in a known place (Ref is set), or a temporary
	Param                // Word, Width: a parameter of the running action
	Variable             // Ref, which is a variable-length field
	Member               // Ref.F of header L; 0 if there is no such header
	Cell                 // cell L of register Index, Width; 0 beyond its end
	Op                   // Op of L and R
	Number               // 1 if Cond holds, else 0

	// Bool.
	Compare // Rel of L and R
	And     // L and R
	Or      // L or R
	Not     // not L
	IsValid // header L, or union L
	Same    // L and R, headers or unions, are valid and equal

	// Headers, unions and stacks. Fixed is known at compile time; the others are found while the
	// packet is processed.
	Fixed       // Header, Union or Stack
	Element     // element L of Stack, none beyond its end
	UnionMember // header Index of union L

	Choose // L if Cond holds, else R
)

// Node is a node of the tree. It is immutable once made.
type Node struct {
	Type   Type
	Kind   Kind
	Op     Operator
	Rel    Relation
	Cond   *Node
	L, R   *Node
	K      *big.Int
	Word   int
	Width  int
	Signed bool
	Index  int
	Ref    phv.Ref
	Header *phv.Header
	Union  *phv.Union
	Stack  *phv.Stack
	HType  *phv.Type                 // type of a header
	UType  *bmv2json.HeaderUnionType // type of a union
	Range  Range                     // range of data
}

// Relation is the relation that a comparison tests.
type Relation uint8

// The relations. The negation of relation r is r xor 1.
const (
	EQ Relation = iota
	NE
	LT
	GE
	GT
	LE
)

// Mirrored returns the relation that holds for r and l whenever the receiver holds for l and r.
func (r Relation) Mirrored() Relation {
	if r < LT {
		return r
	}
	return LT + ((r - LT) ^ 2)
}

// Relations are the operators of BMv2's JSON.
var Relations = map[string]Relation{"==": EQ, "!=": NE, "<": LT, ">=": GE, ">": GT, "<=": LE}

// NewConst returns a constant.
func NewConst(k *big.Int) *Node {
	r := Range{Bits: k.BitLen(), Signed: k.Sign() < 0}
	if r.Signed {
		r.Bits = new(big.Int).Not(k).BitLen()
	}
	return &Node{Type: Data, Kind: Const, K: k, Range: r}
}

// NewInt returns a constant.
func NewInt(k int64) *Node { return NewConst(big.NewInt(k)) }

// NewWord returns the number that the packet header vector holds from a word on.
func NewWord(word, width int, signed bool) *Node {
	r := Range{Bits: width}
	if signed {
		r = Range{width - 1, true}
	}
	return &Node{Type: Data, Kind: Field, Word: word, Width: width, Signed: signed, Range: r}
}

// NewField returns a field of a header instance.
func NewField(r phv.Ref) *Node {
	switch {
	case r.F.Variable:
		return &Node{Type: Data, Kind: Variable, Ref: r, Range: Range{Bits: 8 * r.H.Type.VLMax}}
	case r.IsValidity() && r.H.Metadata:
		return NewInt(1)
	}
	n := NewWord(r.Word(), r.F.Bits, r.F.Signed)
	n.Ref = r
	return n
}

// NewParam returns an action's parameter.
func NewParam(word, width int) *Node {
	return &Node{Type: Data, Kind: Param, Word: word, Width: width, Range: Range{Bits: width}}
}

// NewMember returns a field of a header.
func NewMember(h *Node, f *phv.Field) *Node {
	if h.Kind == Fixed {
		return NewField(phv.Ref{H: h.Header, F: f})
	}
	r := Range{Bits: f.Bits}
	if f.Signed {
		r = Range{f.Bits - 1, true}
	}
	return &Node{Type: Data, Kind: Member, L: h, Ref: phv.Ref{F: f}, Range: r}
}

// NewCell returns a cell of a register.
func NewCell(register, width int, index *Node) *Node {
	return &Node{Type: Data, Kind: Cell, L: index, Index: register, Width: width, Range: Range{Bits: width}}
}

// NewNumber converts a condition to a number, 0 or 1.
func NewNumber(cond *Node) *Node {
	if l := cond.L; cond.Kind == Compare && cond.Rel == NE && l.Range == (Range{Bits: 1}) && cond.R.Kind == Const && cond.R.K.Sign() == 0 {
		return l
	}
	return &Node{Type: Data, Kind: Number, Cond: cond, Range: Range{Bits: 1}}
}

// NewTruth returns a constant condition.
func NewTruth(b bool) *Node {
	k := new(big.Int)
	if b {
		k.SetInt64(1)
	}
	return &Node{Type: Bool, Kind: Const, K: k}
}

// NewCompare returns the comparison of two numbers.
func NewCompare(rel Relation, l, r *Node) *Node {
	n := &Node{Type: Bool, Kind: Compare, Rel: rel, L: l, R: r}
	if l.Kind == Const && r.Kind == Const {
		return NewTruth(new(Evaluator).Bool(n))
	}
	return n
}

// NewLogic returns a condition of kind And, Or or Not.
func NewLogic(k Kind, l, r *Node) *Node { return &Node{Type: Bool, Kind: k, L: l, R: r} }

// NewIsTrue returns the condition that a number is not 0.
func NewIsTrue(n *Node) *Node {
	if n.Kind == Number {
		return n.Cond
	}
	return NewCompare(NE, n, NewInt(0))
}

// NewIsValid returns the validity of a header or a union.
func NewIsValid(n *Node) *Node {
	if n.Type == Header && n.Kind == Fixed {
		return NewIsTrue(NewField(phv.Ref{H: n.Header, F: &n.Header.Validity}))
	}
	return &Node{Type: Bool, Kind: IsValid, L: n}
}

// NewSame returns the equality of two headers or unions.
func NewSame(l, r *Node) *Node { return &Node{Type: Bool, Kind: Same, L: l, R: r} }

// NewHeader returns a header in a known place.
func NewHeader(h *phv.Header) *Node {
	return &Node{Type: Header, Kind: Fixed, Header: h, HType: h.Type}
}

// NewUnion returns a union in a known place.
func NewUnion(u *phv.Union) *Node { return &Node{Type: Union, Kind: Fixed, Union: u, UType: u.Type} }

// NewStack returns a whole stack.
func NewStack(s *phv.Stack) *Node {
	t := Stack
	if s.Unions != nil {
		t = UnionStack
	}
	return &Node{Type: t, Kind: Fixed, Stack: s}
}

// NewElement returns an element of a stack.
func NewElement(s *phv.Stack, index *Node) *Node {
	t := Header
	if s.Unions != nil {
		t = Union
	}
	if index.Kind == Const && index.K.IsUint64() && index.K.Uint64() < uint64(len(s.Elems)) {
		i := index.K.Uint64()
		if t == Union {
			return NewUnion(s.Unions[i])
		}
		return NewHeader(s.Elems[i][0])
	}
	return &Node{Type: t, Kind: Element, Stack: s, L: index, HType: s.Type, UType: s.UType}
}

// NewNext returns the number of extracted elements of a stack, minus d.
func NewNext(s *phv.Stack, d int64) *Node {
	n := NewWord(s.Next, 64, false)
	n.Range = Range{Bits: big.NewInt(int64(len(s.Elems))).BitLen()}
	return NewOp(Sub, n, NewInt(d))
}

// NewUnionMember returns header i of a union. The header has type t.
func NewUnionMember(u *Node, i int, t *phv.Type) *Node {
	if u.Kind == Fixed {
		return NewHeader(u.Union.Elems[i])
	}
	return &Node{Type: Header, Kind: UnionMember, L: u, Index: i, HType: t}
}

// NewChoose returns one of two numbers or headers, chosen by a condition.
func NewChoose(cond, l, r *Node) *Node {
	return &Node{Type: l.Type, Kind: Choose, Cond: cond, L: l, R: r, HType: l.HType, Range: l.Range.or(r.Range)}
}
