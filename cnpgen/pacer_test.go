package cnpgen_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/units"
)

func newPacer(t testing.TB) *cnpgen.Pacer {
	t.Helper()
	p, err := cnpgen.NewPacer(paperParams(25 * units.Gbps))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPacerIsEven(t *testing.T) {
	p := newPacer(t)
	p.Add(0, []cnpgen.Grant{{Key: key(1), CNPs: 4}, {Key: key(2), CNPs: 20}})
	if p.Len() != 24 {
		t.Errorf("%d left, want 24", p.Len())
	}
	var at [3][]units.Time
	for p.Next() != units.MaxTime {
		now := p.Next()
		if _, ok := p.Pop(now - 1); ok {
			t.Fatal("a CNP before its time")
		}
		k, ok := p.Pop(now)
		if !ok {
			t.Fatal("none at its time")
		}
		i := 1
		if k == key(2) {
			i = 2
		}
		at[i] = append(at[i], now)
	}
	for i, n := range at[1] {
		if n != units.Time(i)*20*us {
			t.Errorf("CNP %d of 4 at %v, want %v", i, n, units.Time(i)*20*us)
		}
	}
	for i, n := range at[2] {
		if n != units.Time(i)*4*us {
			t.Errorf("CNP %d of 20 at %v, want %v", i, n, units.Time(i)*4*us)
		}
	}
	if len(at[1]) != 4 || len(at[2]) != 20 || p.Len() != 0 {
		t.Errorf("%d and %d CNPs", len(at[1]), len(at[2]))
	}
}

// A new period's grants replace the remaining ones. Flows without a new grant get no further CNPs.
func TestPacerReplaces(t *testing.T) {
	p := newPacer(t)
	p.Add(0, []cnpgen.Grant{{Key: key(1), CNPs: 8}, {Key: key(2), CNPs: 8}})
	p.Pop(0)
	p.Pop(0)
	p.Add(2*us, []cnpgen.Grant{{Key: key(1), CNPs: 1}})
	if p.Len() != 1 || p.Next() != 4*us {
		t.Errorf("%d left, next at %v, want 1 at 4 µs, the gap after the last", p.Len(), p.Next())
	}
	if k, ok := p.Pop(4 * us); !ok || k != key(1) {
		t.Errorf("popped %v, %v", k, ok)
	}
}

// For any periods and any delay of the caller: two CNPs of a flow are never closer than the gap, no
// more than the grant is sent, and a punctual caller sends all of it within the period.
func TestPacer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := cnpgen.NewPacer(paperParams(25 * units.Gbps))
		if err != nil {
			t.Fatal(err)
		}
		const gap, period = 4 * us, 80 * us
		late := units.Time(rapid.SampledFrom([]int64{0, int64(3 * us), int64(30 * us)}).Draw(t, "late"))
		last := map[cnpgen.FlowKey]units.Time{}
		now := units.Time(0)
		for range rapid.IntRange(1, 6).Draw(t, "periods") {
			var gs []cnpgen.Grant
			for f := range rapid.IntRange(0, 8).Draw(t, "flows") {
				if n := rapid.IntRange(0, 20).Draw(t, "cnps"); n > 0 {
					gs = append(gs, cnpgen.Grant{Key: key(f), CNPs: n})
				}
			}
			p.Add(now, gs)
			length := units.Time(rapid.Int64Range(int64(us), int64(3*period)).Draw(t, "length"))
			got := map[cnpgen.FlowKey]int{}
			end := now + length
			for at := now; ; {
				at = max(at, p.Next())
				if late > 0 && at < end {
					at += units.Time(rapid.Int64Range(0, int64(late)).Draw(t, "later"))
				}
				if at >= end {
					break
				}
				k, ok := p.Pop(at)
				if !ok {
					t.Fatal("nothing at a time when something is due")
				}
				if before, ok := last[k]; ok && at-before < gap {
					t.Fatalf("two CNPs within %v", at-before)
				}
				last[k] = at
				got[k]++
			}
			for _, g := range gs {
				if got[g.Key] > g.CNPs || late == 0 && length >= period+20*gap && got[g.Key] != g.CNPs {
					t.Fatalf("%d CNPs of %d", got[g.Key], g.CNPs)
				}
			}
			now = end
		}
	})
}

func TestPacerDoesNotAllocate(t *testing.T) {
	p := newPacer(t)
	var gs []cnpgen.Grant
	for i := range 100 {
		gs = append(gs, cnpgen.Grant{Key: key(i), CNPs: 1 + i%20})
	}
	now := units.Time(0)
	round := func() {
		p.Add(now, gs)
		now += 80 * us
		for p.Next() < now {
			p.Pop(p.Next())
		}
	}
	round()
	if a := testing.AllocsPerRun(50, round); a != 0 {
		t.Errorf("%v allocations per period", a)
	}
}
