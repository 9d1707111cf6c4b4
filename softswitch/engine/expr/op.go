package expr

import "math/big"

// Operator is an operator on two numbers.
type Operator uint8

// The operators. The casts take the width from R, which must be a constant.
const (
	Add Operator = iota
	Sub
	Mul
	BitAnd
	BitOr
	BitXor
	ShiftLeft
	ShiftRight // towards minus infinity
	Div        // towards 0; division by 0 gives 0
	Mod
	Wrap            // wraps modulo 2^width to a signed number of that width
	Saturate        // takes the nearest signed number of that width
	SaturateNatural // takes the nearest unsigned number of that width
	// BMv2 does not have the next two. Most saturating operations reduce to them.
	Min
	SubNatural // l − r, or 0 if that is negative
)

// Operators are the operators of BMv2's JSON.
var Operators = map[string]Operator{
	"+": Add, "-": Sub, "*": Mul, "&": BitAnd, "|": BitOr, "^": BitXor, "<<": ShiftLeft, ">>": ShiftRight,
	"/": Div, "%": Mod, "two_comp_mod": Wrap, "sat_cast": Saturate, "usat_cast": SaturateNatural,
}

// maxShift bounds shifts to the left. BMv2 has no bound and allocates the memory that a shift
// needs.
const maxShift = 1 << 16

var one = big.NewInt(1)

// unbounded is the Bits of numbers without a bound.
const unbounded = 1 << 24

// Range bounds a number: 0 … 2^Bits−1, or −2^Bits … 2^Bits−1 if Signed.
type Range struct {
	Bits   int
	Signed bool
}

// FitsUnsigned reports whether every number in the range is an unsigned 64-bit number.
func (r Range) FitsUnsigned() bool { return !r.Signed && r.Bits <= 64 }

// FitsSigned reports whether every number in the range is a signed 64-bit number.
func (r Range) FitsSigned() bool { return r.Bits <= 63 }

// Fits reports whether the number fits in one word, signed or unsigned. Different numbers then
// have different words.
func (r Range) Fits() bool { return r.FitsUnsigned() || r.FitsSigned() }

func (r Range) or(s Range) Range { return Range{max(r.Bits, s.Bits), r.Signed || s.Signed} }

// rangeOf returns the range of an operator's result.
func rangeOf(op Operator, l, r *Node) Range {
	a, b := l.Range, r.Range
	both := a.or(b)
	switch op {
	case Add:
		both.Bits++
	case Sub:
		if both.Signed {
			both.Bits++
		}
		both.Signed = a.Signed || r.Kind != Const || r.K.Sign() != 0
	case Mul:
		both.Bits = a.Bits + b.Bits
		if both.Signed {
			both.Bits++ // −2^n times −2^m
		}
	case BitAnd:
		switch {
		case !a.Signed && !b.Signed:
			both.Bits = min(a.Bits, b.Bits)
		case !a.Signed:
			return a
		case !b.Signed:
			return b
		}
	case ShiftLeft:
		switch {
		case r.Kind == Const && r.K.IsUint64() && r.K.Uint64() <= maxShift:
			a.Bits += int(r.K.Uint64())
		case b.Bits <= 16:
			a.Bits += 1<<b.Bits - 1
		default:
			a.Bits = unbounded
		}
		both = a
	case ShiftRight:
		if r.Kind == Const && r.K.IsUint64() {
			a.Bits = max(0, a.Bits-int(min(r.K.Uint64(), unbounded)))
		}
		both = a
	case Div:
		if both.Bits = a.Bits; both.Signed {
			both.Bits++ // −2^n by −1
		}
	case Mod:
		both.Bits = a.Bits
	case Min:
		if !both.Signed {
			both.Bits = min(a.Bits, b.Bits)
		}
	case SubNatural:
		return a
	case Wrap, Saturate:
		return Range{int(r.K.Int64()) - 1, true}
	case SaturateNatural:
		return Range{int(r.K.Int64()), false}
	}
	both.Bits = min(both.Bits, unbounded)
	return both
}

// NewOp returns an operation. The width of a cast is a constant of at least 1.
func NewOp(op Operator, l, r *Node) *Node {
	n := &Node{Type: Data, Kind: Op, Op: op, L: l, R: r, Range: rangeOf(op, l, r)}
	switch op {
	case SaturateNatural:
		if !l.Range.Signed && l.Range.Bits <= n.Range.Bits {
			return l // the number is in the cast's range already
		}
		if l.Kind == Op && l.Op == Sub && !l.L.Range.Signed && !l.R.Range.Signed && l.L.Range.Bits <= n.Range.Bits {
			return NewOp(SubNatural, l.L, l.R)
		}
		if !l.Range.Signed {
			k := new(big.Int).Lsh(one, uint(n.Range.Bits))
			return NewOp(Min, l, NewConst(k.Sub(k, one)))
		}
	case Wrap, Saturate:
		if l.Range.Bits <= n.Range.Bits {
			return l
		}
	case BitOr: // p4c compiles x ++ 0 to x << n | 0
		if r.Kind == Const && r.K.Sign() == 0 {
			return l
		}
	}
	if l.Kind == Const && r.Kind == Const && n.Range.Bits <= maxShift {
		var e Evaluator
		k := new(big.Int)
		e.Data(n, k)
		return NewConst(k)
	}
	return n
}

// apply sets z to x op y; z may be x or y.
func (e *Evaluator) apply(op Operator, z, x, y *big.Int) {
	switch op {
	case Add:
		z.Add(x, y)
	case Sub:
		z.Sub(x, y)
	case Mul:
		z.Mul(x, y)
	case BitAnd:
		z.And(x, y)
	case BitOr:
		z.Or(x, y)
	case BitXor:
		z.Xor(x, y)
	case ShiftLeft:
		n := distance(y)
		if x.BitLen() > maxShift {
			n = 0
		}
		z.Lsh(x, n)
	case ShiftRight:
		z.Rsh(x, distance(y))
	case Div:
		if y.Sign() == 0 {
			z.SetUint64(0)
			return
		}
		z.Quo(x, y)
	case Mod:
		if y.Sign() == 0 {
			z.SetUint64(0)
			return
		}
		z.Rem(x, y)
	case SubNatural:
		if z.Sub(x, y); z.Sign() < 0 {
			z.SetUint64(0)
		}
	case Min:
		z.Set(x)
		if y.Cmp(x) < 0 {
			z.Set(y)
		}
	default:
		e.cast(op, z, x, uint(y.Uint64()))
	}
}

// distance returns the number of bits to shift by, 0 for a negative operand.
func distance(y *big.Int) uint {
	switch {
	case y.Sign() < 0:
		return 0
	case y.IsUint64():
		return uint(min(y.Uint64(), maxShift))
	}
	return maxShift
}

// cast converts x to the range of a number of n bits.
func (e *Evaluator) cast(op Operator, z, x *big.Int, n uint) {
	bound := e.temp()
	defer e.release(1)
	z.Set(x)
	if op == Wrap {
		half := e.temp()
		half.Lsh(one, n-1)
		z.Add(z, half) // maps the range to 0 … 2^n−1
		z.And(z, bound.Sub(bound.Lsh(one, n), one))
		z.Sub(z, half)
		e.release(1)
		return
	}
	if op == Saturate {
		n--
	}
	bound.Sub(bound.Lsh(one, n), one) // the highest number
	switch {
	case z.Cmp(bound) > 0:
		z.Set(bound)
	case op == SaturateNatural && z.Sign() < 0:
		z.SetUint64(0)
	case op == Saturate && z.Cmp(bound.Not(bound)) < 0:
		z.Set(bound)
	}
}
