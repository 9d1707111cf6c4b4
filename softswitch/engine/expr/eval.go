package expr

import (
	"math/big"

	"github.com/headgate/headgate/softswitch/engine/phv"
)

// Evaluator computes expressions over a packet header vector with integers of any size. It belongs
// to one packet. It reuses its memory, so it allocates none once it has grown.
type Evaluator struct {
	*phv.Vector
	// Cell returns the words of a register's cell, nil for an index beyond the register's end.
	Cell func(register int, index uint64) []uint64

	temps []*big.Int
	used  int
}

// temp returns a number for temporary use. release returns the last n such numbers.
func (e *Evaluator) temp() *big.Int {
	if e.used == len(e.temps) {
		e.temps = append(e.temps, new(big.Int))
	}
	e.used++
	return e.temps[e.used-1]
}

func (e *Evaluator) release(n int) { e.used -= n }

// Data sets z to the value of a number.
func (e *Evaluator) Data(n *Node, z *big.Int) {
	switch n.Kind {
	case Const:
		z.Set(n.K)
	case Field:
		e.set(z, e.W[n.Word:n.Word+phv.Words(n.Width)], n.Width, n.Signed)
	case Param:
		e.set(z, e.Args[n.Word:n.Word+phv.Words(n.Width)], n.Width, false)
	case Variable:
		z.SetBytes(e.Vector.Variable(n.Ref))
	case Member:
		z.SetUint64(0)
		if h := e.Header(n.L); h != nil {
			f := n.Ref.F
			e.set(z, e.Field(phv.Ref{H: h, F: f}), f.Bits, f.Signed)
		}
	case Cell:
		e.set(z, e.Cell(n.Index, e.Index(n.L)), n.Width, false)
	case Number:
		z.SetUint64(0)
		if e.Bool(n.Cond) {
			z.SetUint64(1)
		}
	case Choose:
		e.Data(e.choice(n), z)
	case Op:
		x, y := e.temp(), e.temp()
		e.Data(n.L, x)
		e.Data(n.R, y)
		e.apply(n.Op, z, x, y)
		e.release(2)
	}
}

// set sets z to the number in words.
func (e *Evaluator) set(z *big.Int, words []uint64, width int, signed bool) {
	b := z.Bits()[:0]
	for _, w := range words {
		b = append(b, big.Word(w))
	}
	z.SetBits(b)
	if signed && z.Bit(width-1) != 0 {
		t := e.temp()
		z.Sub(z, t.Lsh(t.SetUint64(1), uint(width)))
		e.release(1)
	}
}

func (e *Evaluator) choice(n *Node) *Node {
	if e.Bool(n.Cond) {
		return n.L
	}
	return n.R
}

// Bool returns the value of a condition.
func (e *Evaluator) Bool(n *Node) bool {
	switch n.Kind {
	case Const:
		return n.K.Sign() != 0
	case And:
		return e.Bool(n.L) && e.Bool(n.R)
	case Or:
		return e.Bool(n.L) || e.Bool(n.R)
	case Not:
		return !e.Bool(n.L)
	case IsValid:
		if n.L.Type == Union {
			h, _ := e.ValidMember(e.union(n.L))
			return h != nil
		}
		h := e.Header(n.L)
		return h != nil && e.Vector.IsValid(h)
	case Same:
		if n.L.Type == Union {
			return e.SameUnion(e.union(n.L), e.union(n.R))
		}
		return e.Vector.Same(e.Header(n.L), e.Header(n.R))
	}
	x, y := e.temp(), e.temp()
	e.Data(n.L, x)
	e.Data(n.R, y)
	d := x.Cmp(y)
	e.release(2)
	switch n.Rel {
	case EQ:
		return d == 0
	case NE:
		return d != 0
	case LT:
		return d < 0
	case LE:
		return d <= 0
	case GT:
		return d > 0
	}
	return d >= 0
}

// Header returns the header that an expression designates, or nil if there is none.
func (e *Evaluator) Header(n *Node) *phv.Header {
	switch n.Kind {
	case Choose:
		return e.Header(e.choice(n))
	case Element:
		if i := e.Index(n.L); i < uint64(len(n.Stack.Elems)) {
			return n.Stack.Elems[i][0]
		}
		return nil
	case UnionMember:
		if u := e.union(n.L); u != nil {
			return u.Elems[n.Index]
		}
		return nil
	}
	return n.Header
}

func (e *Evaluator) union(n *Node) *phv.Union {
	if n.Kind != Element {
		return n.Union
	}
	if i := e.Index(n.L); i < uint64(len(n.Stack.Unions)) {
		return n.Stack.Unions[i]
	}
	return nil
}

// AssignUnion copies a union to another of the same type, unless one does not exist.
func (e *Evaluator) AssignUnion(dst, src *Node) {
	if d, s := e.union(dst), e.union(src); d != nil && s != nil && d != s {
		e.AssignAll(d.Elems, s.Elems)
	}
}

// Index returns the value of an index. A number that is negative or does not fit becomes the
// highest index.
func (e *Evaluator) Index(n *Node) uint64 {
	z := e.temp()
	defer e.release(1)
	if e.Data(n, z); z.IsUint64() {
		return z.Uint64()
	}
	return ^uint64(0)
}

// Store computes a number modulo 2^bits and writes it to dst.
func (e *Evaluator) Store(n *Node, dst []uint64, bits int) {
	z := e.temp()
	e.Data(n, z)
	phv.PutWords(dst, z, bits)
	e.release(1)
}
