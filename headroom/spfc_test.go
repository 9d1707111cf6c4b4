package headroom

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

func TestDepartLimit(t *testing.T) {
	// 100 Gb/s for 100 µs are 1.25 MB; the limit is a fifth of it, in bytes and in packets of 1000
	// B.
	if got := DepartLimit(100*units.Gbps, 100*units.Microsecond, 5, 0); got != 250_000 {
		t.Errorf("%d B", got)
	}
	if got := DepartLimit(100*units.Gbps, 100*units.Microsecond, 5, 1000); got != 250 {
		t.Errorf("%d packets", got)
	}
}

// K = 5 tells victims from bursts, except with fewer than four bursting ports and for ε > 0.8 +
// 1/(N+1) (§IV-C).
func TestEquation8(t *testing.T) {
	const k = 5
	for n := 1; n < 64; n++ {
		edge := 0.8 + 1/float64(n+1)
		if _, high := victimRange(n, 0); (high >= k) != (n >= 4) {
			t.Errorf("N = %d: K < %g", n, high)
		}
		for _, congested := range []float64{0, 0.5, 0.8, edge - 1e-9, edge + 1e-9} {
			if congested > 1 {
				continue
			}
			if low, _ := victimRange(n, congested); (low < k) != (congested < edge) {
				t.Errorf("N = %d, ε = %g: K > %g", n, congested, low)
			}
		}
	}
}

func TestMeterTransitions(t *testing.T) {
	type step struct {
		do   func(*Meter)
		want bool
	}
	depart := func(n uint64) func(*Meter) { return func(m *Meter) { m.Depart(n) } }
	tick, pause, resume := (*Meter).Tick, (*Meter).Pause, (*Meter).Resume
	for name, steps := range map[string][]step{
		"begins normal and stays so below the limit":  {{depart(9), false}, {tick, false}, {depart(9), false}},
		"victim as soon as the limit is reached":      {{depart(9), false}, {depart(1), true}},
		"holds through the next period":               {{depart(10), true}, {tick, true}, {depart(5), true}, {depart(5), true}, {tick, true}},
		"normal when a period stays below":            {{depart(10), true}, {tick, true}, {depart(9), true}, {tick, false}},
		"PAUSE makes normal":                          {{depart(10), true}, {pause, false}},
		"and holds normal whatever departs":           {{depart(10), true}, {pause, false}, {depart(50), false}, {tick, false}, {depart(50), false}},
		"RESUME lets this period's count decide":      {{pause, false}, {depart(10), false}, {resume, true}},
		"RESUME alone makes no victim":                {{depart(10), true}, {tick, true}, {pause, false}, {depart(9), false}, {resume, false}, {depart(1), true}},
		"what left before the last tick is forgotten": {{pause, false}, {depart(10), false}, {tick, false}, {resume, false}},
		"the count saturates":                         {{depart(^uint64(0)), true}, {depart(10), true}, {tick, true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(10)
			for i, s := range steps {
				if s.do(&m); m.Victim() != s.want {
					t.Fatalf("after step %d victim is %v, want %v", i, m.Victim(), s.want)
				}
			}
		})
	}
}

// In any sequence of events, a meter follows the paper: a port is a victim only if it is not
// paused, and if this period or the one before reached the limit after the last RESUME.
func TestMeterNeverErrs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 8
		m := NewMeter(limit)
		var count uint64
		paused := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := m.Victim()
			switch rapid.IntRange(0, 4).Draw(t, "do") {
			case 0, 1:
				n := rapid.Uint64Range(1, 5).Draw(t, "n")
				m.Depart(n)
				count += n
				if want := !paused && (before || count >= limit); m.Victim() != want {
					t.Fatalf("departure %d of %d: victim %v", count, limit, m.Victim())
				}
			case 2:
				m.Tick()
				if want := before && count >= limit; m.Victim() != want {
					t.Fatalf("tick after %d: victim %v", count, m.Victim())
				}
				count = 0
			case 3:
				m.Pause()
				paused = true
			case 4:
				m.Resume()
				paused = false
				if want := before || count >= limit; m.Victim() != want {
					t.Fatalf("RESUME after %d: victim %v", count, m.Victim())
				}
			}
			if paused && m.Victim() {
				t.Fatal("victim while paused")
			}
		}
	})
}

func TestClockCatchesUp(t *testing.T) {
	v := &victims{period: 100, ports: []meterClock{{Meter: NewMeter(10), next: 100}}}
	v.departed(50, 0, 10)
	for _, s := range []struct {
		at   units.Time
		want bool
	}{{99, true}, {100, true}, {199, true}, {200, false}} {
		if got := v.at(s.at, 0).Victim(); got != s.want {
			t.Errorf("at %d victim is %v, want %v", s.at, got, s.want)
		}
	}
	v.departed(250, 0, 10)
	if v.at(750, 0).Victim() {
		t.Error("victim after periods without a departure")
	}
	if v.departed(799, 0, 9); v.ports[0].next != 850 {
		t.Errorf("after an idle period the clock starts anew: the period ends at %d, want 850", v.ports[0].next)
	}
	if v.departed(850, 0, 9); v.at(850, 0).Victim() {
		t.Error("departures of two periods were added")
	}
}

// victimRange returns the bounds of Eq. 8, between which K tells a victim port from N bursting
// ports. congested, from 0 to 1, is the share of the victim port's traffic that is congested.
func victimRange(n int, congested float64) (low, high float64) {
	m := float64(n + 1)
	return m / ((1-congested)*m + 1), m
}
