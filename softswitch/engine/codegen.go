package engine

import (
	"math/big"
	"math/bits"

	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// label is a position in the code. It keeps the jumps that were emitted before the position was
// known.
type label struct {
	pc     uint32
	placed bool
	refs   []int
}

// assembler lowers expressions and statements to instructions. It computes numbers modulo 2^64 if
// that gives the same result. Otherwise it emits an opCall of the evaluator.
type assembler struct {
	*code
	reference bool     // the evaluator computes everything
	bits      []uint64 // for each word, the bits that can be set in it; words beyond the list may have all
	temp      uint32   // temporaries in use
	args      []uint64 // arguments of the action being lowered, if they are constant
	labels    []label  // one for each statement of the action being lowered
	exits     bool     // the action being lowered may call exit
}

const allBits = ^uint64(0)

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

func (a *assembler) call(f func(p *Packet)) {
	a.emit(instr{op: opCall, a: uint32(len(a.ops))})
	a.ops = append(a.ops, f)
}

// newTemps reserves n words for temporaries. Resetting temp frees them.
func (a *assembler) newTemps(n int) uint32 {
	t := a.base + a.temp
	a.temp += uint32(n)
	a.temps = max(a.temps, int(a.temp))
	return t
}

// constant returns a number's value if the value is known at compile time.
func (a *assembler) constant(n *expr.Node) (uint64, bool) {
	switch {
	case n.Kind == expr.Const:
		return phv.Low(n.K), true
	case n.Kind == expr.Param && a.args != nil:
		return a.args[n.Word], true
	}
	return 0, false
}

// index returns the word that holds an index. An index that does not fit becomes the highest word.
func (a *assembler) index(n *expr.Node) uint32 {
	if n.Range.Fits() && !a.reference {
		return a.operand(n, allBits)
	}
	t := a.newTemps(1)
	a.call(func(p *Packet) { p.W[t] = p.eval.Index(n) })
	return t
}

// operand returns the word that holds the number. Only the bits in need are defined.
func (a *assembler) operand(n *expr.Node, need uint64) uint32 {
	if inner, mask := a.peel(n); a.possible(inner)&need&^mask == 0 {
		n = inner // the masks change nothing
	}
	if n.Kind == expr.Field && need&^wordMask(n) == 0 && !a.reference {
		return uint32(n.Word)
	}
	d := a.newTemps(1)
	a.value(n, d, allBits)
	return d
}

// wordMask returns the bits in which a field's first word equals the field's value.
func wordMask(n *expr.Node) uint64 {
	if n.Signed && n.Width < 64 {
		return phv.LastMask(n.Width)
	}
	return allBits
}

// store emits code that stores n modulo 2^bits in the words from d on.
func (a *assembler) store(n *expr.Node, d uint32, bits int) {
	words := phv.Words(bits)
	switch {
	case words <= 1:
		a.value(n, d, phv.LastMask(bits))
	case a.reference || !byWords(n, bits):
		a.call(func(p *Packet) { p.eval.Store(n, p.W[d:d+uint32(words)], bits) })
	default:
		for k := range words {
			a.value(wordOf(n, k), d+uint32(k), phv.LastMask(min(64, bits-64*k)))
		}
	}
}

// byWords reports whether each word of a number can be computed on its own, for the lowest bits.
func byWords(n *expr.Node, bits int) bool {
	switch n.Kind {
	case expr.Const, expr.Param:
		return true
	case expr.Field:
		return !n.Signed || n.Width >= bits
	case expr.Op:
		switch n.Op {
		case expr.BitAnd, expr.BitOr, expr.BitXor:
			return byWords(n.L, bits) && byWords(n.R, bits)
		}
	}
	return false
}

// wordOf returns word k of a number for which byWords holds.
func wordOf(n *expr.Node, k int) *expr.Node {
	width := min(64, n.Width-64*k)
	switch {
	case n.Kind == expr.Const:
		return expr.NewConst(new(big.Int).Rsh(n.K, uint(64*k)))
	case n.Kind == expr.Op:
		return expr.NewOp(n.Op, wordOf(n.L, k), wordOf(n.R, k))
	case width <= 0:
		return expr.NewInt(0)
	case n.Kind == expr.Param:
		return expr.NewParam(n.Word+k, width)
	}
	return expr.NewWord(n.Word+k, width, false)
}

// value emits code for d = n & mask. The code reads all operands before it writes d.
func (a *assembler) value(n *expr.Node, d uint32, mask uint64) {
	mark := a.temp
	defer func() { a.temp = mark }()
	if a.reference {
		a.evaluate(n, d, mask)
		return
	}
	n, k := a.peel(n)
	mask &= k
	if k, ok := a.constant(n); ok {
		a.emit(instr{op: opConst, d: d, k: k & mask})
		return
	}
	switch n.Kind {
	case expr.Field:
		if mask&^wordMask(n) != 0 {
			w := expr.NewWord(n.Word, n.Width, false)
			a.operation(expr.NewOp(expr.Wrap, w, expr.NewInt(int64(n.Width))), d, mask)
			return
		}
		a.emit(instr{op: opMove, d: d, a: uint32(n.Word), mask: mask})
	case expr.Param:
		a.emit(instr{op: opParam, d: d, a: uint32(n.Word), mask: mask})
	case expr.Op:
		a.operation(n, d, mask)
	case expr.Cell:
		if n.Width > 64 {
			a.evaluate(n, d, mask)
			return
		}
		t := a.newTemps(1)
		b := a.index(n.L)
		a.emit(instr{op: opConst, d: t})
		a.emit(instr{op: opRegRead, a: uint32(n.Index), b: b, d: t, mask: mask})
		a.emit(instr{op: opMove, d: d, a: t, mask: allBits})
	case expr.Choose, expr.Number:
		l, r := n.L, n.R
		if n.Kind == expr.Number {
			l, r = expr.NewInt(1), expr.NewInt(0)
		}
		var no, end label
		a.branch(n.Cond, false, &no)
		a.value(l, d, mask)
		a.jump(instr{op: opJump}, &end)
		a.place(&no)
		a.value(r, d, mask)
		a.place(&end)
	default:
		a.evaluate(n, d, mask)
	}
}

// evaluate emits a call of the evaluator for a number.
func (a *assembler) evaluate(n *expr.Node, d uint32, mask uint64) {
	a.call(func(p *Packet) {
		p.eval.Store(n, p.W[d:d+1], 64)
		p.W[d] &= mask
	})
}

// word is a constant word, raw an operation on words modulo 2^64.
func word(k uint64) *expr.Node { return expr.NewConst(new(big.Int).SetUint64(k)) }

func raw(op expr.Operator, l *expr.Node, k uint64) *expr.Node {
	if l.Kind == expr.Const && op == expr.Add {
		return word(phv.Low(l.K) + k)
	}
	return &expr.Node{Type: expr.Data, Kind: expr.Op, Op: op, L: l, R: word(k), Range: expr.Range{Bits: 64}}
}

// unsigned maps a signed number of width bits, in two's complement, to an unsigned one by adding
// half of the range.
func unsigned(n *expr.Node, width int) (m *expr.Node, half uint64) {
	half = 1 << (width - 1)
	return raw(expr.BitXor, raw(expr.BitAnd, n, 2*half-1), half), half
}

// ordered adds 2^bits to a number, so that signed numbers with a Range of that many bits compare
// like unsigned words.
func ordered(n *expr.Node, bits int) *expr.Node {
	switch {
	case n.Range.Bits != bits || bits > 62:
	case n.Kind == expr.Field && n.Signed:
		return raw(expr.BitXor, expr.NewWord(n.Word, n.Width, false), 1<<bits)
	case n.Kind == expr.Op && n.Op == expr.Wrap:
		m, _ := unsigned(n.L, bits+1)
		return m
	}
	return raw(expr.Add, n, 1<<bits)
}

var opcodes = map[expr.Operator]opcode{
	expr.Add: opAdd, expr.Sub: opSub, expr.Mul: opMul, expr.BitAnd: opAnd, expr.BitOr: opOr, expr.BitXor: opXor,
	expr.ShiftLeft: opShl, expr.ShiftRight: opShr, expr.Min: opMin, expr.SubNatural: opSubNat, expr.Div: opDiv, expr.Mod: opMod,
}

// inWords returns an operation as one on words modulo 2^64, or nil if there is none.
func inWords(n *expr.Node) *expr.Node {
	l, r := n.L.Range, n.R.Range
	switch n.Op {
	case expr.ShiftLeft: // a distance beyond 64 gives 0
		if !r.FitsUnsigned() {
			return nil
		}
	case expr.ShiftRight:
		switch {
		case l.FitsUnsigned() && r.FitsUnsigned():
		case l.FitsSigned() && n.R.Kind == expr.Const && n.R.K.IsUint64():
			k := min(n.R.K.Uint64(), 63)
			return raw(expr.Sub, raw(expr.ShiftRight, ordered(n.L, 63), k), 1<<(63-k))
		default:
			return nil
		}
	case expr.Div, expr.Mod, expr.Min, expr.SubNatural:
		if !l.FitsUnsigned() || !r.FitsUnsigned() {
			return nil
		}
	case expr.Wrap:
		width := n.R.K.Int64()
		if width >= 64 {
			return raw(expr.Add, n.L, 0)
		}
		m, half := unsigned(n.L, int(width))
		return raw(expr.Sub, m, half)
	case expr.Saturate, expr.SaturateNatural:
		if !l.FitsSigned() {
			return nil
		}
		high, low := uint64(1)<<(min(n.Range.Bits, 63))-1, uint64(0)
		if n.Op == expr.Saturate {
			low = ^high
		}
		// A lower bound of x is an upper bound of its complement.
		top := raw(expr.Min, ordered(n.L, 63), high+1<<63)
		return raw(expr.Sub, raw(expr.BitXor, raw(expr.Min, raw(expr.BitXor, top, allBits), ^(low+1<<63)), allBits), 1<<63)
	}
	return n
}

func (a *assembler) operation(n *expr.Node, d uint32, mask uint64) {
	t := inWords(n)
	if t == nil {
		a.evaluate(n, d, mask)
		return
	}
	op, l, r := opcodes[t.Op], t.L, t.R
	if _, ok := a.constant(l); ok && commutes(t.Op) {
		l, r = r, l
	}
	k, ok := a.constant(r)
	ok = ok && op >= opAdd          // division has no form with a constant
	left, right := allBits, allBits // bits of l and r that affect the result
	switch {
	case op == opAnd || op == opOr || op == opXor:
		left, right = mask, mask
	case op == opAdd || op == opSub || op == opMul:
		left, right = upTo(mask), upTo(mask)
	case op == opShl:
		left = upTo(mask)
	case op == opShr && ok:
		left = mask << k
	}
	i := instr{op: op, d: d, a: a.operand(l, left), mask: mask}
	if ok {
		i.op, i.k = i.op+arithToK, k
	} else {
		i.b = a.operand(r, right)
	}
	a.emit(i)
}

func commutes(op expr.Operator) bool {
	switch op {
	case expr.Add, expr.Mul, expr.BitAnd, expr.BitOr, expr.BitXor, expr.Min:
		return true
	}
	return false
}

// upTo returns a mask of all bits up to the highest one in m.
func upTo(m uint64) uint64 { return 1<<bits.Len64(m) - 1 }

// peel removes constant masks from a number.
func (a *assembler) peel(n *expr.Node) (inner *expr.Node, mask uint64) {
	mask = allBits
	for n.Kind == expr.Op && n.Op == expr.BitAnd {
		if k, ok := a.constant(n.R); ok {
			n, mask = n.L, mask&k
		} else if k, ok := a.constant(n.L); ok {
			n, mask = n.R, mask&k
		} else {
			break
		}
	}
	return n, mask
}

// possible returns the bits that can be set in a number's word.
func (a *assembler) possible(n *expr.Node) uint64 {
	if k, ok := a.constant(n); ok {
		return k
	}
	switch n.Kind {
	case expr.Field:
		if n.Word < len(a.bits) && wordMask(n) == allBits {
			return a.bits[n.Word]
		}
	case expr.Number:
		return 1
	case expr.Choose:
		return a.possible(n.L) | a.possible(n.R)
	case expr.Op:
		l, r := a.possible(n.L), a.possible(n.R)
		k, ok := a.constant(n.R)
		switch {
		case n.Op == expr.BitAnd:
			return l & r
		case n.Op == expr.BitOr || n.Op == expr.BitXor:
			return l | r
		case n.Op == expr.SubNatural:
			return upTo(l)
		case n.Op == expr.Min && n.Range.FitsUnsigned():
			return upTo(min(l, r))
		case n.Op == expr.ShiftRight && ok && n.L.Range.FitsUnsigned():
			return l >> k
		case n.Op == expr.ShiftLeft && ok && (l<<k)>>k == l:
			return l << k
		case n.Op == expr.Add && (l|r)>>63 == 0:
			return upTo(upTo(l) + upTo(r))
		}
	}
	return allBits
}

var jumps = [...]opcode{expr.EQ: opJumpEQ, expr.NE: opJumpNE, expr.LT: opJumpLT, expr.GE: opJumpGE}

// branch jumps to a label if the condition equals want.
func (a *assembler) branch(n *expr.Node, want bool, to *label) {
	mark := a.temp
	defer func() { a.temp = mark }()
	kind := n.Kind
	if a.reference && kind != expr.Const {
		kind = expr.Same // the evaluator computes it
	}
	switch kind {
	case expr.Const:
		if n.K.Sign() != 0 == want {
			a.jump(instr{op: opJump}, to)
		}
	case expr.Not:
		a.branch(n.L, !want, to)
	case expr.And, expr.Or:
		if want != (n.Kind == expr.And) { // either side decides
			a.branch(n.L, want, to)
			a.branch(n.R, want, to)
			return
		}
		var skip label
		a.branch(n.L, !want, &skip)
		a.branch(n.R, want, to)
		a.place(&skip)
	case expr.Compare:
		a.compare(n, want, to)
	default:
		a.test(n, want, to)
	}
}

// test is branch for conditions that only the evaluator can compute.
func (a *assembler) test(n *expr.Node, want bool, to *label) {
	t := a.newTemps(1)
	a.call(func(p *Packet) {
		p.W[t] = 0
		if p.eval.Bool(n) == want {
			p.W[t] = 1
		}
	})
	a.jump(instr{op: opJumpNE + jumpToK, a: t}, to)
}

func (a *assembler) compare(n *expr.Node, want bool, to *label) {
	rel, l, r := n.Rel, n.L, n.R
	switch {
	case l.Range.FitsUnsigned() && r.Range.FitsUnsigned():
	case !l.Range.FitsSigned() || !r.Range.FitsSigned():
		a.test(n, want, to)
		return
	case rel > expr.NE:
		bits := max(l.Range.Bits, r.Range.Bits)
		l, r = ordered(l, bits), ordered(r, bits)
	}
	if !want {
		rel ^= 1
	}
	if _, ok := a.constant(l); ok {
		rel, l, r = rel.Mirrored(), r, l
	}
	k, ok := a.constant(r)
	switch { // there are no jumps for > and ≤
	case rel <= expr.GE:
	case ok && k < allBits:
		rel, k = expr.LT+expr.LE-rel, k+1
	default:
		rel, l, r, ok = rel.Mirrored(), r, l, false
	}
	i := instr{op: jumps[rel], a: a.operand(l, allBits)}
	if ok {
		i.op, i.k = i.op+jumpToK, k
	} else {
		i.b = a.operand(r, allBits)
	}
	a.jump(i, to)
}
