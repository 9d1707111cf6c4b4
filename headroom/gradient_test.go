package headroom

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/headroom/model"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

func gradients(t interface{ Fatal(...any) }, rate units.Rate, full units.Bytes, p log2.Precision) *Gradients {
	logs, err := log2.New(p)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGradients(rate, 0, full, logs, 64)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Algorithm 3 stays within its stated bound of Algorithm 2, for queues that grow, shrink and stand
// still in any order.
func TestAlgorithm3FollowsAlgorithm2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]units.Rate{20 * units.Mbps, units.Gbps, 40 * units.Gbps, 100 * units.Gbps, 400 * units.Gbps}).Draw(t, "rate")
		full := units.Bytes(rapid.Int64Range(5000, 500_000).Draw(t, "phi"))
		bits := rapid.UintRange(2, 8).Draw(t, "bits")
		g := gradients(t, rate, full, log2.Precision{Log: bits, Exp: bits, Frac: 12})
		unit := units.Time(1) << g.Unit
		perUnit := func(bytesPerSecond float64) float64 { return bytesPerSecond * unit.Seconds() }
		delay := rate.TxTime(full)
		ref := model.Algorithm2{Delay: delay, Phi: full, Limit: float64(g.Limit) / unit.Seconds()}
		var e Estimator
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		falls, stands := rng.IntN(101), rng.IntN(20)
		var now units.Time
		var length units.Bytes
		largest := int64(0)
		for range 200 {
			n := 64 + units.Bytes(rng.Int64N(9000))
			dt := rate.TxTime(n) * units.Time(rng.IntN(4))
			dq := n
			switch {
			case rng.IntN(100) < falls:
				dq = -min(length, units.Bytes(rng.Int64N(20_000)))
			case rng.IntN(100) < stands:
				dq = 0
			}
			now, length = now+dt, length+dq
			phi, want := e.Arrived(g, now, length), ref.Arrived(now, length)
			if dt > 0 {
				largest = max(largest, min(g.Limit, int64(math.Ceil(math.Abs(perUnit(float64(dq)/dt.Seconds()))))))
			} else if dq != 0 {
				largest = g.Limit
			}
			bound := float64(g.errorBound(largest))
			if d := math.Abs(float64(e.Gradient()) - perUnit(ref.Gradient())); d > bound {
				t.Fatalf("ĝ = %d, Algorithm 2 has %.1f, bound %.0f", e.Gradient(), perUnit(ref.Gradient()), bound)
			}
			over := bound/unit.Seconds()*delay.Seconds() + 2
			if d := float64(phi) - want; d < -over || d > over+float64(g.Phi.Error()) {
				t.Fatalf("φ̂ = %d B, Algorithm 2 has %.1f B, bounds −%.0f and +%.0f", phi, want, over, over+float64(g.Phi.Error()))
			}
		}
	})
}

// The purpose of the algorithm: a queue that grows at line rate needs Φ, one that grows at half of
// it needs about half, and one that shrinks steadily needs none.
func TestHeadroomOfSteadyQueues(t *testing.T) {
	const full = 60_000
	rate := 100 * units.Gbps
	g := gradients(t, rate, full, log2.Default())
	for _, tc := range []struct {
		name      string
		dq        units.Bytes // per 1500 B at line rate
		low, high units.Bytes
	}{
		{"line rate", 1500, full * 97 / 100, full},
		{"half the line rate", 750, full * 48 / 100, full * 54 / 100},
		{"a tenth", 150, full * 9 / 100, full * 13 / 100},
		{"level", 0, 0, full / 32},
		{"falling", -750, 0, 0},
	} {
		var e Estimator
		var now units.Time
		length, phi := units.Bytes(1<<20), units.Bytes(0)
		for range 100 {
			now += rate.TxTime(1500)
			length += tc.dq
			phi = e.Arrived(g, now, length)
		}
		if phi < tc.low || phi > tc.high {
			t.Errorf("%s: φ̂ = %d B, want %d to %d B", tc.name, phi, tc.low, tc.high)
		}
	}
}

// The average follows the gradient up and down (line 4 as printed in the paper could only fall),
// and a change affects φ̂ at once through the deviation.
func TestAverageFollowsBothWays(t *testing.T) {
	rate := 100 * units.Gbps
	g := gradients(t, rate, 60_000, log2.Default())
	line := int64(rate.BytesIn(g.tick << g.Unit))
	var e Estimator
	var now units.Time
	var length units.Bytes
	feed := func(n int, dq units.Bytes) units.Bytes {
		var phi units.Bytes
		for range n {
			now += rate.TxTime(1500)
			length += dq
			phi = e.Arrived(g, now, length)
		}
		return phi
	}
	feed(1, 1500)
	if feed(60, 1500); e.avg < line*95/100 {
		t.Fatalf("after growth at line rate g_avg = %d, line rate %d", e.avg, line)
	}
	if feed(60, -1500); e.avg > -line*95/100 {
		t.Fatalf("after falling at line rate g_avg = %d, line rate %d", e.avg, line)
	}
	if phi := feed(2, 1500); phi < 30_000 {
		t.Errorf("the first growth after a fall gives φ̂ = %d B: the deviation must count", phi)
	}
	if feed(60, 1500); e.avg < line*95/100 {
		t.Fatalf("after growth again g_avg = %d, line rate %d", e.avg, line)
	}
}

func TestOneInstantSaturates(t *testing.T) {
	g := gradients(t, 100*units.Gbps, 60_000, log2.Default())
	if want := 16 * int64((100 * units.Gbps).BytesIn(1<<g.Unit)); g.Limit != want {
		t.Errorf("saturates at %d, want 16 line rates, %d", g.Limit, want)
	}
	for _, tc := range []struct {
		dq   units.Bytes
		dt   units.Time
		want int64
	}{{1500, 0, g.Limit}, {-1500, 0, -g.Limit}, {0, 0, 0}, {1 << 40, 1, g.Limit}, {-1 << 40, 1, -g.Limit}, {0, 5, 0}} {
		if got := g.gradient(tc.dq, tc.dt); got != tc.want {
			t.Errorf("Δq = %d B, Δt = %d ps: %d, want %d", tc.dq, tc.dt, got, tc.want)
		}
	}
}

func TestAlgorithm4(t *testing.T) {
	const window = 10 * units.Millisecond
	var w Window
	for i, tc := range []struct {
		at    units.Time
		class uint8
		want  bool
	}{
		{1, 3, false},
		{window, 3, false},
		{window + 1, 3, false}, // exactly one window is not longer than the window
		{window + 2, 3, true},
		{2 * window, 3, true},
		{2*window + 1, 4, false}, // another queue ends it at once
		{2*window + 2, 3, false},
		{3*window + 2, 3, false},
		{3*window + 3, 3, true},
	} {
		if got := w.Arrived(tc.at, tc.class, window); got != tc.want {
			t.Errorf("packet %d at %v: τ = 0 is %v, want %v", i, tc.at, got, tc.want)
		}
	}
}

func BenchmarkEstimator(b *testing.B) {
	g := gradients(b, 100*units.Gbps, 60_000, log2.Default())
	var e Estimator
	b.ReportAllocs()
	for i := range b.N {
		e.Arrived(g, units.Time(i)*120_000, units.Bytes(i%512)*1500)
	}
}

// errorBound bounds |ĝ − Algorithm 2's ĝ| while no |g| has exceeded largest (at most 16 line rates,
// where g saturates). With the tables' error r, one g has an error of e = r·largest + ½. The
// averages are convex: their error is e, plus 4 for rounding down with a weight of ¼. The error of
// v is twice e, plus 4. So ĝ = g_avg + 4·v_avg has an error of 9e + 36.
func (g *Gradients) errorBound(largest int64) int64 {
	e := g.Logs.QuotientError()*float64(largest) + 0.5
	return int64(math.Ceil(9*e)) + 36
}
