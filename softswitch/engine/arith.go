package engine

import (
	"math/big"
)

// maxShift caps shifts to the left on the slow path; BMv2 would allocate memory for any.
const maxShift = 1 << 16

// arith compiles the operators on two numbers.
func (c *compiler) arith(op string, l, r *dexpr) *dexpr {
	if l.konst != nil && r.konst != nil {
		if k := fold(op, l.konst, r.konst); k != nil {
			return constant(k)
		}
	}
	switch op {
	case "+", "-", "*":
		return ring(op, l, r)
	case "&", "|", "^":
		return bitwise(op, l, r)
	case "<<":
		return shiftLeft(l, r)
	case ">>":
		return shiftRight(l, r)
	case "/", "%":
		return divide(op, l, r)
	case "two_comp_mod", "usat_cast", "sat_cast":
		if r.konst == nil || !r.konst.IsInt64() || r.konst.Int64() < 1 || r.konst.Int64() > maxFieldBits {
			c.fail("the width of %s must be a constant from 1 to %d", op, maxFieldBits)
		}
		return cast(op, l, int(r.konst.Int64()))
	}
	c.fail("unknown operator %q", op)
	return nil
}

// fold computes an operation on constants, nil where it is left to run time.
func fold(op string, a, b *big.Int) *big.Int {
	z := new(big.Int)
	if a.BitLen() > maxShift || b.BitLen() > maxShift {
		return nil
	}
	switch op {
	case "+":
		return z.Add(a, b)
	case "-":
		return z.Sub(a, b)
	case "*":
		return z.Mul(a, b)
	case "&":
		return z.And(a, b)
	case "|":
		return z.Or(a, b)
	case "^":
		return z.Xor(a, b)
	case "<<", ">>":
		if !b.IsInt64() || b.Sign() < 0 || b.Int64() > maxShift {
			return nil
		}
		if op == "<<" {
			return z.Lsh(a, uint(b.Int64()))
		}
		return z.Rsh(a, uint(b.Int64()))
	}
	return nil
}

// ring compiles +, − and ×.
func ring(op string, l, r *dexpr) *dexpr {
	e := &dexpr{word: -1}
	a, b := l.m, r.m
	ax, bx := l.exact(), r.exact()
	var f func(z, x, y *big.Int) *big.Int
	switch op {
	case "+":
		f = (*big.Int).Add
		e.tree = operation(opAdd, l, r)
		switch {
		case l.word >= 0 && r.konst != nil:
			w, k := l.word, lowWord(r.konst)
			e.m = func(p *Packet) uint64 { return p.w[w] + k }
		case r.konst != nil:
			k := lowWord(r.konst)
			e.m = func(p *Packet) uint64 { return a(p) + k }
		case l.word >= 0 && r.word >= 0:
			v, w := l.word, r.word
			e.m = func(p *Packet) uint64 { return p.w[v] + p.w[w] }
		default:
			e.m = func(p *Packet) uint64 { return a(p) + b(p) }
		}
		if l.lo != nil && r.lo != nil {
			e.lo = new(big.Int).Add(l.lo, r.lo)
		}
		if l.hi != nil && r.hi != nil {
			e.hi = new(big.Int).Add(l.hi, r.hi)
		}
	case "-":
		f = (*big.Int).Sub
		e.tree = operation(opSub, l, r)
		switch {
		case l.word >= 0 && r.konst != nil:
			w, k := l.word, lowWord(r.konst)
			e.m = func(p *Packet) uint64 { return p.w[w] - k }
		case l.word >= 0 && r.word >= 0:
			v, w := l.word, r.word
			e.m = func(p *Packet) uint64 { return p.w[v] - p.w[w] }
		default:
			e.m = func(p *Packet) uint64 { return a(p) - b(p) }
		}
		if l.lo != nil && r.hi != nil {
			e.lo = new(big.Int).Sub(l.lo, r.hi)
		}
		if l.hi != nil && r.lo != nil {
			e.hi = new(big.Int).Sub(l.hi, r.lo)
		}
	default:
		f = (*big.Int).Mul
		e.m = func(p *Packet) uint64 { return a(p) * b(p) }
		e.tree = operation(opMul, l, r)
		if l.maxBits() >= 0 && r.maxBits() >= 0 && l.maxBits()+r.maxBits() <= 2*maxFieldBits {
			for _, x := range []*big.Int{l.lo, l.hi} {
				for _, y := range []*big.Int{r.lo, r.hi} {
					z := new(big.Int).Mul(x, y)
					if e.lo == nil || z.Cmp(e.lo) < 0 {
						e.lo = z
					}
					if e.hi == nil || z.Cmp(e.hi) > 0 {
						e.hi = z
					}
				}
			}
		}
	}
	e.big = func(p *Packet, z *big.Int) {
		x := p.bigTemp()
		ax(p, x)
		bx(p, z)
		f(z, x, z)
		p.bigDone()
	}
	return e
}

// bitwise compiles &, | and ^ in two's complement.
func bitwise(op string, l, r *dexpr) *dexpr {
	if l.konst != nil {
		l, r = r, l
	}
	e := &dexpr{word: -1}
	a, b := l.m, r.m
	al, bl := l.limbs(), r.limbs()
	var f func(z, x, y *big.Int) *big.Int
	var g func(x, y uint64) uint64
	switch op {
	case "&":
		f = (*big.Int).And
		e.tree = operation(opAnd, l, r)
		g = func(x, y uint64) uint64 { return x & y }
		switch {
		case l.word >= 0 && r.konst != nil:
			w, k := l.word, lowWord(r.konst)
			e.m = func(p *Packet) uint64 { return p.w[w] & k }
		case r.konst != nil:
			k := lowWord(r.konst)
			e.m = func(p *Packet) uint64 { return a(p) & k }
		default:
			e.m = func(p *Packet) uint64 { return a(p) & b(p) }
		}
		switch {
		case l.nonNegative() && r.nonNegative():
			e.lo, e.hi = bigZero, l.hi
			if e.hi == nil || r.hi != nil && r.hi.Cmp(e.hi) < 0 {
				e.hi = r.hi
			}
		case l.nonNegative():
			e.lo, e.hi = bigZero, l.hi
		case r.nonNegative():
			e.lo, e.hi = bigZero, r.hi
		}
	case "|":
		f = (*big.Int).Or
		e.tree = operation(opOr, l, r)
		g = func(x, y uint64) uint64 { return x | y }
		e.m = func(p *Packet) uint64 { return a(p) | b(p) }
	default:
		f = (*big.Int).Xor
		e.tree = operation(opXor, l, r)
		g = func(x, y uint64) uint64 { return x ^ y }
		e.m = func(p *Packet) uint64 { return a(p) ^ b(p) }
	}
	if n, m := l.maxBits(), r.maxBits(); e.hi == nil && n >= 0 && m >= 0 {
		e.hi = new(big.Int).Sub(pow2(max(n, m)), big.NewInt(1))
		e.lo = bigZero
		if !l.nonNegative() || !r.nonNegative() {
			e.lo = new(big.Int).Neg(pow2(max(n, m)))
		}
	}
	if al != nil && bl != nil {
		e.limb = func(p *Packet, k int) uint64 { return g(al(p, k), bl(p, k)) }
	}
	ax, bx := l.exact(), r.exact()
	e.big = func(p *Packet, z *big.Int) {
		x := p.bigTemp()
		ax(p, x)
		bx(p, z)
		f(z, x, z)
		p.bigDone()
	}
	return e
}

// not compiles ~x, which is −x−1.
func not(r *dexpr) *dexpr {
	e := &dexpr{word: -1}
	b := r.m
	e.m = func(p *Packet) uint64 { return ^b(p) }
	if r.hi != nil {
		e.lo = new(big.Int).Not(r.hi)
	}
	if r.lo != nil {
		e.hi = new(big.Int).Not(r.lo)
	}
	if bl := r.limbs(); bl != nil {
		e.limb = func(p *Packet, k int) uint64 { return ^bl(p, k) }
	}
	bx := r.exact()
	e.big = func(p *Packet, z *big.Int) { bx(p, z); z.Not(z) }
	return e
}

// amount evaluates a shift distance, capped at maxShift.
func amount(r *dexpr) wordFn {
	b := r.m
	if r.fitsU64() {
		return func(p *Packet) uint64 { return min(b(p), maxShift) }
	}
	ex := r.exact()
	return func(p *Packet) uint64 {
		z := p.bigTemp()
		defer p.bigDone()
		ex(p, z)
		switch {
		case z.Sign() < 0:
			return 0
		case z.IsUint64():
			return min(z.Uint64(), maxShift)
		}
		return maxShift
	}
}

func shiftLeft(l, r *dexpr) *dexpr {
	e := &dexpr{word: -1}
	a, ax, n := l.m, l.exact(), amount(r)
	if r.konst != nil && r.konst.Sign() >= 0 && r.konst.IsInt64() && r.konst.Int64() <= maxShift {
		k := uint(r.konst.Int64())
		e.m = func(p *Packet) uint64 { return a(p) << k }
		e.tree = operation(opShl, l, r)
		if l.lo != nil {
			e.lo = new(big.Int).Lsh(l.lo, k)
		}
		if l.hi != nil {
			e.hi = new(big.Int).Lsh(l.hi, k)
		}
		if al := l.limbs(); al != nil {
			q, s := int(k/64), k%64
			e.limb = func(p *Packet, i int) uint64 {
				if i < q {
					return 0
				}
				v := al(p, i-q) << s
				if i > q && s > 0 {
					v |= al(p, i-q-1) >> (64 - s)
				}
				return v
			}
		}
	} else {
		e.m = func(p *Packet) uint64 { return a(p) << n(p) }
		if r.fitsU64() { // any distance beyond 64 gives 0
			e.tree = operation(opShl, l, r)
		}
		if l.nonNegative() {
			e.lo = bigZero
		}
		if r.hi != nil && r.hi.IsInt64() && r.hi.Int64() <= maxShift && l.lo != nil && l.hi != nil {
			k := uint(max(0, r.hi.Int64()))
			e.lo = minBig(l.lo, new(big.Int).Lsh(l.lo, k))
			e.hi = maxBig(l.hi, new(big.Int).Lsh(l.hi, k))
		}
	}
	e.big = func(p *Packet, z *big.Int) {
		k := n(p)
		ax(p, z)
		if z.BitLen() > maxShift {
			k = 0
		}
		z.Lsh(z, uint(k))
	}
	return e
}

// shiftRight compiles >>, which rounds towards minus infinity.
func shiftRight(l, r *dexpr) *dexpr {
	e := &dexpr{word: -1}
	a, ax, n := l.m, l.exact(), amount(r)
	if l.lo != nil {
		e.lo = minBig(l.lo, bigZero)
	}
	if l.hi != nil {
		e.hi = maxBig(l.hi, big.NewInt(-1))
	}
	fixed := r.konst != nil && r.konst.Sign() >= 0 && r.konst.IsInt64() && r.konst.Int64() <= maxShift
	var k uint
	if fixed {
		k = uint(r.konst.Int64())
		if l.lo != nil {
			e.lo = new(big.Int).Rsh(l.lo, k)
		}
		if l.hi != nil {
			e.hi = new(big.Int).Rsh(l.hi, k)
		}
	}
	e.big = func(p *Packet, z *big.Int) {
		s := n(p)
		ax(p, z)
		z.Rsh(z, uint(s))
	}
	al := l.limbs()
	switch {
	case l.fitsU64() && fixed:
		e.m = func(p *Packet) uint64 { return a(p) >> k }
		e.tree = operation(opShr, l, r)
	case l.fitsU64():
		e.m = func(p *Packet) uint64 { return a(p) >> n(p) }
		if r.fitsU64() {
			e.tree = operation(opShr, l, r)
		}
	case l.fitsI64():
		e.m = func(p *Packet) uint64 { return uint64(int64(a(p)) >> n(p)) }
	case al != nil:
		e.limb = func(p *Packet, i int) uint64 {
			s := n(p)
			q, s := int(s/64), s%64
			v := al(p, i+q) >> s
			if s > 0 {
				v |= al(p, i+q+1) << (64 - s)
			}
			return v
		}
		e.m = func(p *Packet) uint64 { return e.limb(p, 0) }
	default:
		e.m = lowOf(e.big)
	}
	return e
}

// lowOf is the low word of a value that only the slow path can compute.
func lowOf(f bigFn) wordFn {
	return func(p *Packet) uint64 {
		z := p.bigTemp()
		f(p, z)
		v := bigLimb(z, 0)
		p.bigDone()
		return v
	}
}

// divide compiles / and %. Dividing by zero gives 0; BMv2 stops the whole switch.
func divide(op string, l, r *dexpr) *dexpr {
	e := &dexpr{word: -1}
	a, b := l.m, r.m
	ax, bx := l.exact(), r.exact()
	quo := op == "/"
	e.big = func(p *Packet, z *big.Int) {
		x, y := p.bigTemp(), p.bigTemp()
		ax(p, x)
		bx(p, y)
		switch {
		case y.Sign() == 0:
			z.SetUint64(0)
		case quo:
			z.Quo(x, y)
		default:
			z.Rem(x, y)
		}
		p.bigDone()
		p.bigDone()
	}
	if n := l.maxBits(); n >= 0 {
		e.hi = pow2(n)
		e.lo = bigZero
		if !l.nonNegative() || !r.nonNegative() {
			e.lo = new(big.Int).Neg(e.hi)
		} else {
			e.hi = l.hi
		}
	}
	if l.fitsU64() && r.fitsU64() {
		e.m = func(p *Packet) uint64 {
			x, y := a(p), b(p)
			switch {
			case y == 0:
				return 0
			case quo:
				return x / y
			}
			return x % y
		}
	} else {
		e.m = lowOf(e.big)
	}
	return e
}

// cast compiles two_comp_mod, usat_cast and sat_cast to n bits.
func cast(op string, l *dexpr, n int) *dexpr {
	one := big.NewInt(1)
	lo, hi := new(big.Int).Neg(pow2(n-1)), new(big.Int).Sub(pow2(n-1), one)
	if op == "usat_cast" {
		lo, hi = bigZero, new(big.Int).Sub(pow2(n), one)
	}
	if l.within(lo, hi) {
		return l
	}
	e := &dexpr{word: -1, lo: lo, hi: hi}
	a, ax := l.m, l.exact()
	if op == "two_comp_mod" {
		mod := pow2(n)
		e.big = func(p *Packet, z *big.Int) {
			ax(p, z)
			wrapSigned(z, mod, hi)
		}
		if n <= 64 {
			sh := uint(64 - n)
			e.m = func(p *Packet) uint64 { return uint64(int64(a(p)<<sh) >> sh) }
		} else {
			e.m = a
		}
		return e
	}
	e.big = func(p *Packet, z *big.Int) {
		ax(p, z)
		if z.Cmp(hi) > 0 {
			z.Set(hi)
		} else if z.Cmp(lo) < 0 {
			z.Set(lo)
		}
	}
	switch {
	case l.fitsU64() && hi.IsUint64():
		top := hi.Uint64()
		e.m = func(p *Packet) uint64 { return min(a(p), top) }
		e.tree = operation(opMin, l, constant(hi))
	case l.fitsI64() && lo.IsInt64() && hi.IsInt64():
		bot, top := lo.Int64(), hi.Int64()
		e.m = func(p *Packet) uint64 { return uint64(min(max(int64(a(p)), bot), top)) }
	default:
		e.m = lowOf(e.big)
	}
	return e
}

// wrapSigned reduces z modulo mod into [−mod/2, hi].
func wrapSigned(z, mod, hi *big.Int) {
	z.Mod(z, mod)
	if z.Cmp(hi) > 0 {
		z.Sub(z, mod)
	}
}
