package log2

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

func precisions(t *rapid.T) Precision {
	f := rapid.UintRange(MinFrac, MaxFrac).Draw(t, "frac")
	return Precision{
		Log:  rapid.UintRange(MinBits, MaxBits).Draw(t, "log"),
		Exp:  rapid.UintRange(MinBits, min(MaxBits, f)).Draw(t, "exp"),
		Frac: f,
	}
}

func mustNew(t interface{ Fatal(...any) }, p Precision) *Table {
	table, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Numbers whose bit lengths are spread evenly, so that small and large ones both occur.
func numbers() *rapid.Generator[uint64] {
	return rapid.Custom(func(t *rapid.T) uint64 {
		return rapid.Uint64().Draw(t, "bits")>>rapid.IntRange(0, 63).Draw(t, "shift") | 1
	})
}

func TestErrorsAreWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := mustNew(t, precisions(t))
		one := float64(int(1) << table.p.Frac)
		x := numbers().Draw(t, "x")
		if e := math.Abs(float64(table.Log2(x))/one - math.Log2(float64(x))); e > table.p.logError()+1e-12 {
			t.Fatalf("log2(%d) is off by %g, bound %g", x, e, table.p.logError())
		}
		v := int32(rapid.IntRange(int(-4*one), int(40*one)).Draw(t, "v"))
		want := math.Exp2(float64(v) / one)
		if e := math.Abs(float64(table.Exp2(v)) - want); e > want*table.p.expError()+0.5+1e-6 {
			t.Fatalf("exp2(%d/%g) = %d, want %g ± %g", v, one, table.Exp2(v), want, want*table.p.expError()+0.5)
		}
		a, b := uint64(rapid.Uint32().Draw(t, "a")), numbers().Draw(t, "b")>>24|1
		scale := rapid.UintRange(0, 28).Draw(t, "scale")
		exact := float64(a) / float64(b) * math.Exp2(float64(scale))
		if e := math.Abs(float64(table.Quotient(a, b, scale)) - exact); e > exact*table.QuotientError()+0.5+1e-6 {
			t.Fatalf("%d·2^%d/%d = %d, want %g ± %g", a, scale, b, table.Quotient(a, b, scale), exact, exact*table.QuotientError()+0.5)
		}
	})
}

// The bounds are not merely safe: some input comes close to each of them.
func TestBoundsAreTight(t *testing.T) {
	for _, p := range []Precision{{2, 2, 8}, {6, 6, 10}, {8, 8, 14}} {
		table := mustNew(t, p)
		one := float64(int(1) << p.Frac)
		var log, exp float64
		for x := uint64(2) << p.Log; x < 64<<p.Log; x++ {
			log = max(log, math.Abs(float64(table.Log2(x))/one-math.Log2(float64(x))))
		}
		for v := 40 << p.Frac; v < 41<<p.Frac; v++ {
			exp = max(exp, math.Abs(float64(table.Exp2(int32(v)))/math.Exp2(float64(v)/one)-1))
		}
		if log < 0.8*table.p.logError() || exp < 0.8*table.p.expError() {
			t.Errorf("%+v: largest errors %g and %g, bounds %g and %g", p, log, exp, table.p.logError(), table.p.expError())
		}
	}
}

func TestDefaultDividesAsStated(t *testing.T) {
	p := Default()
	if e := p.QuotientError(); e > 0.022 {
		t.Errorf("error bound %g, the comment says 2.2 %%", e)
	}
	if l, e := p.LogEntries(32), p.ExpEntries(5); l != 1727 || e != 2048 {
		t.Errorf("%d and %d entries, the comment says 1727 and 2048", l, e)
	}
}

func TestEdges(t *testing.T) {
	table := mustNew(t, Default())
	for x, want := range map[uint64]int32{0: 0, 1: 0, 2: 1 << 10, 64: 6 << 10} {
		if got := table.Log2(x); got != want {
			t.Errorf("Log2(%d) = %d, want %d", x, got, want)
		}
	}
	for v, want := range map[int32]uint64{math.MinInt32: 0, -2 << 10: 0, 0: 1, math.MaxInt32: 1 << 62} {
		if got := table.Exp2(v); got != want {
			t.Errorf("Exp2(%d) = %d, want %d", v, got, want)
		}
	}
	if got := table.Quotient(0, 5, 20); got != 0 {
		t.Errorf("0/5 = %d", got)
	}
}

// match looks a key up as a longest-prefix-match table would.
func match(list []Entry, key uint64, width uint) (result uint64, hits int) {
	for _, e := range list {
		if key>>(width-e.PrefixLen) == e.Key>>(width-e.PrefixLen) {
			result = e.Result
			hits++
		}
	}
	return result, hits
}

func TestEntriesGiveTheSameValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := precisions(t)
		p.Log, p.Exp = min(p.Log, 5), min(p.Exp, 5)
		table := mustNew(t, p)
		width := rapid.UintRange(1, 64).Draw(t, "width")
		list := table.LogEntries(width)
		if len(list) != p.LogEntries(width) {
			t.Fatalf("%d entries, %d announced", len(list), p.LogEntries(width))
		}
		x := max(1, numbers().Draw(t, "x")>>(64-width))
		if got, hits := match(list, x, width); hits != 1 || got != uint64(table.Log2(x)) {
			t.Fatalf("key %d: %d from %d entries, want %d from one", x, got, hits, table.Log2(x))
		}
		whole := rapid.UintRange(0, 5).Draw(t, "whole")
		list = table.ExpEntries(whole)
		if len(list) != p.ExpEntries(whole) {
			t.Fatalf("%d entries, %d announced", len(list), p.ExpEntries(whole))
		}
		v := rapid.Uint64Range(0, 1<<(whole+p.Frac)-1).Draw(t, "v")
		if got, hits := match(list, v, whole+p.Frac); hits != 1 || got != table.Exp2(int32(v)) {
			t.Fatalf("exponent %d: %d from %d entries, want %d from one", v, got, hits, table.Exp2(int32(v)))
		}
	})
}

func TestBadPrecision(t *testing.T) {
	for field, p := range map[string]Precision{
		"log": {0, 6, 10}, "exp": {6, 11, 10}, "frac": {6, 6, 17},
	} {
		var fe *units.FieldError
		if _, err := New(p); !errors.As(err, &fe) || fe.Field != field {
			t.Errorf("%+v: %v, want a fault of %s", p, err, field)
		}
	}
}

func BenchmarkQuotient(b *testing.B) {
	table := mustNew(b, Default())
	b.ReportAllocs()
	var sum uint64
	for i := range uint64(b.N) {
		sum += table.Quotient(1500, 100_000+i, 22)
	}
	_ = sum
}
