// Package log2 holds logarithm and exponential tables, with which a switch divides by
// lookups, a subtraction and a shift (DSH §IV-C, Algorithm 3; Sharma et al., NSDI 2017).
// The tables are arrays here and lists of prefix entries for a match-action pipeline; both
// give the same values.
//
// Logarithms and exponents are fixed-point numbers with Frac fractional bits. The bounds of
// LogError, ExpError and QuotientError hold for every input. The tests check them.
package log2

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/headgate/headgate/units"
)

// Limits of Precision.
const (
	MinBits, MaxBits = 1, 12
	MinFrac, MaxFrac = 4, 16
)

// mantissaBits is the precision of an exponential's mantissa; its rounding is in ExpError.
const mantissaBits = 30

// Precision chooses between error and number of entries.
type Precision struct {
	Log  uint // bits after the leading one that the logarithm looks at, MinBits to MaxBits
	Exp  uint // fractional bits that the exponential looks at, MinBits to MaxBits and at most Frac
	Frac uint // fractional bits of a logarithm, MinFrac to MaxFrac
}

// Default returns the precision that the policies use when none is configured. Quotients
// are within 2.2 %, for 1727 logarithm entries over 32 bits and 2048 exponential ones.
func Default() Precision { return Precision{Log: 6, Exp: 6, Frac: 10} }

// Validate returns a *units.FieldError for the first parameter out of range.
func (p Precision) Validate() error {
	return cmp.Or(
		units.Fault(p.Log < MinBits || p.Log > MaxBits, "log", p.Log, fmt.Sprintf("%d to %d bits", MinBits, MaxBits), ""),
		units.Fault(p.Frac < MinFrac || p.Frac > MaxFrac, "frac", p.Frac, fmt.Sprintf("%d to %d bits", MinFrac, MaxFrac), ""),
		units.Fault(p.Exp < MinBits || p.Exp > min(MaxBits, p.Frac), "exp", p.Exp, fmt.Sprintf("%d to %d bits", MinBits, min(MaxBits, p.Frac)), ""),
	)
}

// Table is a pair of tables. It is never written after New, so it can be shared.
type Table struct {
	p     Precision
	exact []int32  // logarithms of 1 to 2^(Log+1) − 1
	frac  []int32  // logarithms of the mantissas 1 + i/2^Log
	exp   []uint64 // 2^(i/2^Exp), scaled by 2^mantissaBits
}

// New fills the tables. It returns a *units.FieldError when p is out of range.
func New(p Precision) (*Table, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	t := &Table{p: p, exact: make([]int32, 2<<p.Log), frac: make([]int32, 1<<p.Log), exp: make([]uint64, 1<<p.Exp)}
	one := float64(int(1) << p.Frac)
	for x := 1; x < len(t.exact); x++ {
		t.exact[x] = int32(math.Round(math.Log2(float64(x)) * one))
	}
	for i := range t.frac {
		// The middle of the logarithms of the bucket's two ends errs least.
		low, high := 1+float64(i)/float64(len(t.frac)), 1+float64(i+1)/float64(len(t.frac))
		t.frac[i] = int32(math.Round((math.Log2(low) + math.Log2(high)) / 2 * one))
	}
	step := 1 / float64(len(t.exp))
	// A bucket holds the exponents from i·step to the last fixed-point number before
	// (i+1)·step; its middle errs least.
	last := step - 1/one
	for i := range t.exp {
		t.exp[i] = uint64(math.Round(math.Exp2(float64(i)*step+last/2) * (1 << mantissaBits)))
	}
	return t, nil
}

// Precision returns the table's precision.
func (t *Table) Precision() Precision { return t.p }

// Log2 returns log2(x) in fixed point. The logarithm of 0 does not exist; it returns that
// of 1, and callers handle 0 themselves.
func (t *Table) Log2(x uint64) int32 {
	if x < uint64(len(t.exact)) {
		return t.exact[x]
	}
	e := uint(bits.Len64(x) - 1)
	return int32(e<<t.p.Frac) + t.frac[x>>(e-t.p.Log)&uint64(len(t.frac)-1)]
}

// Exp2 returns 2^v, v in fixed point, rounded to the nearest integer. Results beyond 2^62
// are 2^62.
func (t *Table) Exp2(v int32) uint64 {
	i := int(v >> t.p.Frac)
	m := t.exp[uint(v)>>(t.p.Frac-t.p.Exp)&uint(len(t.exp)-1)]
	switch {
	case i >= 62:
		return 1 << 62
	case i >= mantissaBits:
		return m << (i - mantissaBits)
	case i < -1:
		return 0
	}
	down := uint(mantissaBits - i)
	return (m + 1<<(down-1)) >> down
}

// Quotient returns a·2^scale/b to within QuotientError and half a unit, by Algorithm 3's
// line 2. A b of 0 counts as 1.
func (t *Table) Quotient(a, b uint64, scale uint) uint64 {
	if a == 0 {
		return 0
	}
	return t.Exp2(t.Log2(a) - t.Log2(b) + int32(scale<<t.p.Frac))
}

// QuotientError bounds the relative error of Quotient before its result is rounded to an
// integer.
func (t *Table) QuotientError() float64 { return t.p.QuotientError() }

// logError bounds |Log2(x) − log2(x)| for every x ≥ 1, in units of 1 (not of the last place): half of
// the widest bucket and half of the last place.
func (p Precision) logError() float64 {
	return math.Log2(1+math.Exp2(-float64(p.Log)))/2 + math.Exp2(-float64(p.Frac)-1)
}

// expError bounds |Exp2(v)/2^v − 1| before the result is rounded to an integer.
func (p Precision) expError() float64 {
	width := math.Exp2(-float64(p.Exp)) - math.Exp2(-float64(p.Frac))
	return math.Exp2(width/2) - 1 + math.Exp2(-mantissaBits)
}

// QuotientError bounds the relative error of a division with tables of this precision.
func (p Precision) QuotientError() float64 {
	return math.Exp2(2*p.logError())*(1+p.expError()) - 1
}

// Entry is one longest-prefix-match entry: a key has Result if its first PrefixLen bits (of Width) equal those
// of Key. The entries of a table never overlap.
type Entry struct {
	Key       uint64
	PrefixLen uint
	Result    uint64
}

// LogEntries returns the entries of a logarithm table over keys of width bits (1 to 64),
// without one for key 0. Small keys have an entry each, larger ones share one per bucket.
func (t *Table) LogEntries(width uint) []Entry {
	list := make([]Entry, 0, t.p.LogEntries(width))
	for x := uint64(1); x < uint64(len(t.exact)) && uint(bits.Len64(x)) <= width; x++ {
		list = append(list, Entry{x, width, uint64(t.exact[x])})
	}
	for e := t.p.Log + 1; e < width; e++ {
		for i := range t.frac {
			shift := e - t.p.Log
			key := (1<<t.p.Log | uint64(i)) << shift
			list = append(list, Entry{key, width - shift, uint64(t.Log2(key))})
		}
	}
	return list
}

// ExpEntries returns the entries of an exponential table for exponents from 0 to below
// 2^whole, whole ≤ 6: keys are fixed-point numbers of whole + Frac bits.
func (t *Table) ExpEntries(whole uint) []Entry {
	low := t.p.Frac - t.p.Exp
	list := make([]Entry, 0, t.p.ExpEntries(whole))
	for i := range uint64(1) << (whole + t.p.Exp) {
		list = append(list, Entry{i << low, whole + t.p.Exp, t.Exp2(int32(i << low))})
	}
	return list
}

// LogEntries returns how many entries a logarithm table over width bits takes.
func (p Precision) LogEntries(width uint) int {
	if width <= p.Log+1 {
		return 1<<width - 1
	}
	return 2<<p.Log - 1 + int(width-p.Log-1)<<p.Log
}

// ExpEntries returns how many entries an exponential table for exponents below 2^whole
// takes.
func (p Precision) ExpEntries(whole uint) int { return 1 << (whole + p.Exp) }
