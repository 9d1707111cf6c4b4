package log2

import (
	"math/bits"
)

// Entry is one longest-prefix-match entry: keys whose first PrefixLen bits (of Width) are
// those of Key have Result. The entries of a table never overlap.
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
