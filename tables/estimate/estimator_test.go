package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/headroom/model"
	"github.com/headgate/headgate/units"
)

// trace is the random walk of one queue's depth: phases in which it grows, falls or stands,
// with packets of random sizes.
type trace struct {
	rng       *rand.Rand
	rate      units.Rate // of the port
	cell      units.Bytes
	at        units.Time
	depth     int64 // cells
	drift     float64
	remaining int
}

func (r *trace) next() (now, depth uint32) {
	if r.remaining == 0 {
		r.remaining = 1 + r.rng.IntN(60)
		r.drift = 2*r.rng.Float64() - 1
	}
	r.remaining--
	n := 64 + units.Bytes(r.rng.Int64N(9000))
	r.at += r.rate.TxTime(n) * units.Time(1+r.rng.IntN(3))
	step := r.drift * (0.5 + r.rng.Float64()) * float64(n) / float64(r.cell)
	r.depth = min(1<<19-1, max(0, r.depth+int64(math.Round(step))))
	return uint32(r.at / Tick), uint32(r.depth)
}

// The chip follows Algorithm 2 on every other packet within the stated bound.
func TestChipFollowsAlgorithm2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chip := rapid.SampledFrom([]string{"tofino1", "tofino2"}).Draw(t, "chip")
		rate := rapid.SampledFrom([]units.Rate{10 * units.Gbps, 100 * units.Gbps, 400 * units.Gbps}).Draw(t, "rate")
		tab := tables(t, Config{Chip: chip, Ports: []Port{{1, rate, 60_000}}})
		limit := float64(tab.Limit()) / (1024e-9)
		ref := model.Algorithm2{Delay: units.Microsecond, Phi: 60_000, Limit: limit}
		r := &trace{rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), rate: rate, cell: tab.cell, at: units.Millisecond}
		wild := rapid.Bool().Draw(t, "wild")
		var e Estimator
		largest := 0.0
		var before, at uint32
		for i := range 600 {
			now, depth := r.next()
			if wild && r.rng.IntN(4) == 0 {
				depth = r.rng.Uint32N(1 << 19)
				r.depth = int64(depth)
			}
			if i == 0 {
				depth, r.depth = 0, 0
			}
			e.Departed(tab, now, depth)
			if i%2 == 1 {
				bound := float64(tab.Error(int64(math.Ceil(largest))))
				if d := math.Abs(float64(e.Gradient()) - ref.Gradient()*4096e-9); d > bound {
					t.Fatalf("packet %d: ĝ = %d, Algorithm 2 has %.1f, bound %.0f", i, e.Gradient(), ref.Gradient()*4096e-9, bound)
				}
				continue
			}
			ref.Arrived(units.Time(now)*Tick, units.Bytes(depth)*tab.cell)
			if i > 0 {
				g := math.Abs(float64(depth)-float64(before)) * float64(tab.cell) * 1024 / float64(now-at)
				largest = max(largest, min(g, float64(tab.Limit())))
			}
			before, at = depth, now
		}
	})
}

// errorsOf collects differences of ĝ, in multiples of the line rate, and of φ̂, of Φ.
type errorsOf struct {
	low, high, sum, relative float64
	phi, sumPhi              float64
	bias                     float64 // sum of φ̂'s signed errors
	under                    int     // φ̂ is too small by more than an eighth of Φ
	n                        int
}

func (e *errorsOf) add(got, want, line, phi, wantPhi, full float64) {
	d, dPhi := (got-want)/line, math.Abs(phi-wantPhi)/full
	e.bias += (phi - wantPhi) / full
	if wantPhi-phi > full/8 {
		e.under++
	}
	e.low, e.high, e.sum = min(e.low, d), max(e.high, d), e.sum+math.Abs(d)
	if want > line/4 {
		e.relative = max(e.relative, math.Abs(got-want)/want)
	}
	e.phi, e.sumPhi, e.n = max(e.phi, dPhi), e.sumPhi+dPhi, e.n+1
}

func (e *errorsOf) mean() float64     { return e.sum / float64(e.n) }
func (e *errorsOf) meanPhi() float64  { return e.sumPhi / float64(e.n) }
func (e *errorsOf) meanBias() float64 { return e.bias / float64(e.n) }
func (e *errorsOf) short() float64    { return float64(e.under) / float64(e.n) }

// What the chip costs, beside headroom.Estimator with the same tables: its arithmetic, when
// both run on every other packet, and the packets that it leaves out, when the other runs on
// all. The traces are random walks, not a switch's; the limits are what they gave, rounded
// up. The bound for every trace, on every other packet, is Tables.Error.
func TestMeasuredErrors(t *testing.T) {
	const full = 60_000
	rate := 100 * units.Gbps
	for _, chip := range []string{"tofino1", "tofino2"} {
		tab := tables(t, Config{Chip: chip, Ports: []Port{{1, rate, full}}})
		g, err := headroom.NewGradients(rate, Tick, full, tab.logs, 64)
		if err != nil {
			t.Fatal(err)
		}
		line := float64(rate.In(Tick << Unit))
		toChip := math.Exp2(Unit - float64(g.Unit))
		var arithmetic, all errorsOf
		for seed := range uint64(50) {
			r := &trace{rng: rand.New(rand.NewPCG(seed, 2)), rate: rate, cell: tab.cell, at: units.Millisecond}
			var e Estimator
			var half, every headroom.Estimator
			var halfPhi units.Bytes
			for i := range 4000 {
				now, depth := r.next()
				e.Departed(tab, now, depth)
				at, length := units.Time(now)*Tick, units.Bytes(depth)*tab.cell
				everyPhi := every.Arrived(g, at, length)
				if i%2 == 0 {
					halfPhi = half.Arrived(g, at, length)
					continue
				}
				got, phi := float64(e.Gradient()), float64(tab.Headroom(0, e.Gradient()))
				arithmetic.add(got, float64(half.Gradient())*toChip, line, phi, float64(halfPhi), full)
				all.add(got, float64(every.Gradient())*toChip, line, phi, float64(everyPhi), full)
			}
		}
		for _, m := range []struct {
			against string
			errorsOf
		}{{"every other packet", arithmetic}, {"every packet", all}} {
			t.Logf("%s against Algorithm 3 on %s: ĝ errs by %+.1f %% to %+.1f %% of the line rate, %.2f %% on average; by up to %.1f %% of a ĝ above a quarter of it; φ̂ by up to %.1f %% of Φ, %.2f %% on average (%+.2f %% with its sign), and is too small by more than Φ/8 in %.1f %% of the cases",
				chip, m.against, 100*m.low, 100*m.high, 100*m.mean(), 100*m.relative, 100*m.phi, 100*m.meanPhi(), 100*m.meanBias(), 100*m.short())
		}
		if arithmetic.high > 0.1 || arithmetic.low < -0.12 || arithmetic.mean() > 0.01 || arithmetic.relative > 0.2 || arithmetic.phi > 0.1 || arithmetic.meanPhi() > 0.01 {
			t.Errorf("%s: the arithmetic errs by more than was measured", chip)
		}
		if all.meanPhi() > 0.16 || all.short() > 0.27 || arithmetic.short() != 0 {
			t.Errorf("%s: the packets left out cost more than was measured", chip)
		}
	}
}

// A queue of steady growth has ĝ from its g to 1.31 g (1.22 here): what the math unit does to the
// average also shows in the deviation, which counts four times. Never below, but for the
// tables' own error.
func TestSteadyGrowth(t *testing.T) {
	low, high := math.Inf(1), 0.0
	tab := tables(t, Config{Chip: "tofino1", Ports: []Port{{1, 400 * units.Gbps, 60_000}}})
	for ticks := uint32(800); ticks < 3200; ticks += 7 {
		var e Estimator
		for i := range uint32(900) {
			e.Departed(tab, i*ticks/2, i/2*400) // 400 cells in so many ticks, by pairs
			if i > 500 && i%2 == 1 {
				ratio := float64(e.Gradient()) / 4 / float64(tab.Gradient(400, ticks))
				low, high = min(low, ratio), max(high, ratio)
			}
		}
	}
	t.Logf("ĝ of a steady g is %.3f g to %.3f g", low, high)
	if low < 1 || high > 1.31 {
		t.Errorf("ĝ is %.3f g to %.3f g, want 1 to 1.31", low, high)
	}
}

// What depth the first packet has, and an hour of silence, is forgotten; standing and
// falling queues need nothing.
func TestForgets(t *testing.T) {
	tab := tables(t, Config{Chip: "tofino1", Ports: []Port{{1, 100 * units.Gbps, 60_000}}})
	var e Estimator
	for i := range uint32(400) {
		e.Departed(tab, 1000+120*i, 1<<18)
	}
	if e.Gradient() > 400 || e.Gradient() < 0 { // what the unit's shift leaves: less than 1 %
		t.Errorf("a standing queue has ĝ = %d", e.Gradient())
	}
	for i := range uint32(400) {
		e.Departed(tab, 60_000+120*i, 1<<18-10*i)
	}
	if e.Gradient() >= 0 || tab.Headroom(0, e.Gradient()) != 0 {
		t.Errorf("a falling queue has ĝ = %d and φ̂ = %d B", e.Gradient(), tab.Headroom(0, e.Gradient()))
	}
	if line := int32((100 * units.Gbps).In(Tick << Unit)); e.Average() > -line/2 || e.Average() < -line*2/3 {
		t.Errorf("800 B in 120 ns of 1500 B have g_avg = %d of %d", e.Average(), line)
	}
}

func BenchmarkEstimator(b *testing.B) {
	tab := tables(b, Config{Chip: "tofino1", Ports: []Port{{1, 100 * units.Gbps, 60_000}}})
	b.ReportAllocs()
	var e Estimator
	for i := range b.N {
		e.Departed(tab, uint32(i)*120, uint32(i)&511)
	}
}
