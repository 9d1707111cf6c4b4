package soze

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

func paperParams() Params {
	return param.For[Params](law.Flow{Rate: 100 * units.Gbps, MSS: 1000})
}

func TestTargetFunction(t *testing.T) {
	target := NewTarget(paperParams())
	for _, tt := range []struct {
		rate units.Rate
		want units.Time
	}{
		{200 * units.Gbps, 3 * units.Microsecond}, // clamped
		{100 * units.Gbps, 3 * units.Microsecond},
		{10 * units.Gbps, 21500 * units.Nanosecond},
		{units.Gbps, 40 * units.Microsecond},
		{units.Mbps, 40 * units.Microsecond}, // clamped
	} {
		if got := target.Delay(float64(tt.rate)); got.Micros() < tt.want.Micros()-1e-3 || got.Micros() > tt.want.Micros()+1e-3 {
			t.Errorf("T(%v) = %v, want %v", tt.rate, got, tt.want)
		}
	}
	if got := target.Share(0); math.Abs(got/100e9-1) > 1e-9 {
		t.Errorf("share of an empty queue = %v, want alpha", got)
	}
	if got := target.Share(units.Second); math.Abs(got/1e9-1) > 1e-9 {
		t.Errorf("share of an endless queue = %v, want beta", got)
	}
}

func TestTargetFunctionFallsAndInverts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		par := paperParams()
		par.Beta = units.Rate(rapid.Int64Range(1000, int64(par.Alpha)/2).Draw(t, "beta"))
		target := NewTarget(par)
		x := math.Exp(rapid.Float64Range(target.lnBeta, target.lnAlpha).Draw(t, "ln x"))
		y := math.Exp(rapid.Float64Range(target.lnBeta, target.lnAlpha).Draw(t, "ln y"))
		if x < y && target.Delay(x) < target.Delay(y) {
			t.Fatalf("T(%v) = %v is below T(%v) = %v", x, target.Delay(x), y, target.Delay(y))
		}
		if got := target.Share(target.Delay(x)); math.Abs(got/x-1) > 1e-5 {
			t.Fatalf("T⁻¹(T(%v)) = %v", x, got)
		}
	})
}

// The first lemma (§3.1.5, Appendix C): flows that see the same delay, whatever it is, converge to
// the same rate per weight if and only if 0 < m < 2.
func TestFairnessLemma(t *testing.T) {
	target := NewTarget(paperParams())
	apart := func(m float64, delays func(i int) units.Time) float64 {
		a, b := math.Log(80e9), math.Log(2e9)
		for i := range 200 {
			d := float64(delays(i))
			a, b = target.stepLn(a, d, m), target.stepLn(b, d, m)
		}
		return math.Abs(a - b)
	}
	steady := func(int) units.Time { return 20 * units.Microsecond }
	moving := func(i int) units.Time { return units.Time(i*7919%40) * units.Microsecond }
	start := math.Log(80e9) - math.Log(2e9)
	for _, m := range []float64{0.05, 0.2, 1, 1.5, 1.95} {
		if got := apart(m, steady); got > 1e-3 {
			t.Errorf("m = %v: ln of the rates per weight still differs by %v", m, got)
		}
		if got := apart(m, moving); got > 1e-3 {
			t.Errorf("m = %v, delay moving: ln of the rates per weight still differs by %v", m, got)
		}
	}
	for _, m := range []float64{-0.1, 0, 2, 2.2} {
		if got := apart(m, steady); got < start*0.999 {
			t.Errorf("m = %v: converged from %v to %v, the lemma excludes it", m, start, got)
		}
	}
}

// The second lemma (Appendix D): the queueing delay converges to T(fair share) when k is
// large enough for the update interval. Linearised for a queue that integrates the rates,
// D ← D + Δt·(e^ρ − 1) and ρ ← (1−m)·ρ − m·(L/k)·(D − T), the bound is k > Δt·L.
func TestQueueLemma(t *testing.T) {
	const interval = 2 * units.Microsecond
	run := func(k units.Time, flows int) (first, last float64, want units.Time) {
		par := paperParams()
		par.K = k
		target := NewTarget(par)
		capacity := float64(par.Alpha)
		fair := capacity / float64(flows)
		want = target.Delay(fair)
		x, d := math.Log(fair*1.2), float64(want)
		const steps = 4000
		for i := range steps {
			rise := float64(interval) * (math.Exp(x)*float64(flows)/capacity - 1)
			x = target.stepLn(x, d, 0.5)
			d = max(d+rise, 0)
			off := math.Abs(d - float64(want))
			if i < steps/10 {
				first = max(first, off)
			}
			if i >= steps*9/10 {
				last = max(last, off)
			}
		}
		return first, last, want
	}
	bound := units.Time(float64(interval) * math.Log(100))
	for _, flows := range []int{2, 5, 20, 80} {
		if _, last, want := run(bound*3/2, flows); last > 1e-3*float64(want) {
			t.Errorf("%d flows, k 1.5 times the bound: still %v ps off %v", flows, last, want)
		}
		if first, last, _ := run(bound*2/3, flows); last < first/4 {
			t.Errorf("%d flows, k 2/3 of the bound: settles from %v to %v ps off, the lemma excludes it", flows, first, last)
		}
	}
}

// The law applies the update function, one exponent m per window of acknowledgements.
func TestLawAppliesTheExponentPerWindow(t *testing.T) {
	par := paperParams()
	par.M = 0.1
	l, err := New(par, 2)
	if err != nil {
		t.Fatal(err)
	}
	const base = 8 * units.Microsecond
	ack := law.Ack{RTT: base + 10*units.Microsecond, MaxQD: 10 * units.Microsecond, Acked: 8000, AckedSeq: 8000}
	l.OnAck(&ack)
	ack.Acked = 1000
	if got, want := float64(l.Rate()), 2*l.target.Share(ack.MaxQD); math.Abs(got/want-1) > 1e-6 {
		t.Fatalf("the first echo gives %v b/s, want T⁻¹·w = %v", got, want)
	}
	before, d := l.lnX, 20*units.Microsecond
	ack.RTT, ack.MaxQD = base+d, d
	for left := l.allow.Window; left > 0; left -= ack.Acked {
		ack.Inflight = l.allow.Window
		l.OnAck(&ack)
	}
	want := l.target.stepLn(before, float64(d), 0.1)
	if math.Abs(l.lnX-want) > 0.1*math.Abs(want-before) {
		t.Errorf("ln x went from %v to %v within a window, Equation 7 gives %v", before, l.lnX, want)
	}
}

func TestWeightScalesTheRateAtOnce(t *testing.T) {
	l, err := New(paperParams(), 1)
	if err != nil {
		t.Fatal(err)
	}
	l.OnAck(&law.Ack{RTT: 30 * units.Microsecond, MaxQD: 20 * units.Microsecond, Acked: 8000, AckedSeq: 8000})
	before := l.Rate()
	if err := l.SetWeight(2.5); err != nil {
		t.Fatal(err)
	}
	if got := float64(l.Rate()) / float64(before); math.Abs(got-2.5) > 1e-6 {
		t.Errorf("rate changed by a factor %v, want 2.5", got)
	}
	for _, w := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := l.SetWeight(w); err == nil || l.Weight() != 2.5 {
			t.Errorf("SetWeight(%v) = %v, weight %v", w, err, l.Weight())
		}
	}
}

// TestSaturatedEcho: a queueing delay beyond maxQD's range is not counted as propagation, before and after the flow
// joins.
func TestSaturatedEcho(t *testing.T) {
	longest := LongestQD(40 * units.Microsecond)
	for _, joined := range []bool{false, true} {
		l, err := New(paperParams(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if joined {
			l.OnAck(&law.Ack{RTT: 8 * units.Microsecond, Acked: 8000, AckedSeq: 8000, SentSeq: 16000})
		}
		for range 100 {
			l.OnAck(&law.Ack{RTT: 2 * longest, MaxQD: longest, Acked: 8000, AckedSeq: 8000, SentSeq: 16000})
		}
		if most := 8 * float64(units.Microsecond); l.rest > most {
			t.Errorf("joined before %v: the path without the queue is taken for %v, want %v at most", joined, units.Time(l.rest), units.Time(most))
		}
	}
}

// TestPauseBeforeJoining: a flow that has sent little and pauses, like an application that says hello, joins with its
// later packets. It joins at the rate per weight of the queue that these meet, not at a NIC rate that the pause
// distorts.
func TestPauseBeforeJoining(t *testing.T) {
	p := paperParams()
	p.WholeWindow = true
	l, err := New(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	const base, d = 8 * units.Microsecond, 20 * units.Microsecond
	l.OnAck(&law.Ack{Now: base, RTT: base, Acked: 40, AckedSeq: 40, SentSeq: 40})
	if l.joined {
		t.Fatal("the flow joins with 40 B on an empty path")
	}
	for i := range uint64(8) {
		now := units.Millisecond + units.Time(i)*100*units.Nanosecond
		l.OnAck(&law.Ack{Now: now, RTT: base + d, MaxQD: d, Acked: 1000, AckedSeq: 40 + 1000*(i+1), SentSeq: 10000})
	}
	if got, want := float64(l.Rate()), l.target.Share(d); !l.joined || math.Abs(got/want-1) > 1e-6 {
		t.Errorf("joined %v at %v, want %v", l.joined, units.Rate(got), units.Rate(want))
	}
}

func TestCorners(t *testing.T) {
	l, err := New(paperParams(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if a := l.Allowance(); a.Window != 8000 || a.Rate != 100*units.Gbps {
		t.Errorf("before the first echo: %+v", a)
	}
	l.OnAck(&law.Ack{Now: 1, RTT: 8 * units.Microsecond, Acked: 8000, AckedSeq: 8000, SentSeq: 16000})
	if got := l.Rate(); got < 99*units.Gbps {
		t.Errorf("on an empty path: %v, want alpha", got)
	}
	// Nothing is in flight although the window is open: the flow must not grow.
	l.OnAck(&law.Ack{Now: 2, RTT: 45 * units.Microsecond, MaxQD: 37 * units.Microsecond, Acked: 100000, Inflight: 100000})
	before := l.Rate()
	l.OnAck(&law.Ack{Now: 3, RTT: 8 * units.Microsecond, Acked: 1000})
	if l.Rate() > before {
		t.Errorf("a flow that uses none of its window grew from %v to %v", before, l.Rate())
	}
	l.OnEvent(law.Loss, 4)
	after := l.Rate()
	if after >= before {
		t.Errorf("a loss left the rate at %v", after)
	}
	l.OnEvent(law.Loss, 5)
	if l.Rate() != after {
		t.Error("a second loss of the same round trip counted again")
	}
	// A weight so small that its share is less than a packet per round trip.
	if err := l.SetWeight(1e-6); err != nil {
		t.Fatal(err)
	}
	if a := l.Allowance(); a.Window != 1000 || a.Rate != l.Rate() {
		t.Errorf("tiny share: %+v, want one packet paced at %v", a, l.Rate())
	}
}

// TestJoin: a flow joins at the rate per weight that belongs to its longest echo, but at most at the rate at
// which its NIC sent the first window, which shows whether other flows of its host share the NIC.
func TestJoin(t *testing.T) {
	const (
		wire = 80 * units.Nanosecond // of a packet of 1000 B at 100 Gb/s
		base = 8 * units.Microsecond
	)
	for _, c := range []struct {
		name   string
		out    units.Time // packets per acknowledgement
		each   uint64     // packets that one acknowledgement is for
		weight float64
		queue  func(i int) units.Time // that packet i waits in
		want   units.Rate
	}{
		{"alone", wire, 1, 1, func(int) units.Time { return 0 }, 100 * units.Gbps},
		{"one of ten of its host", 10 * wire, 1, 1, func(int) units.Time { return 0 }, 10 * units.Gbps},
		{"of weight 2 among them", 10 * wire, 1, 2, func(int) units.Time { return 0 }, 10 * units.Gbps},
		{"where flows have 10 Gb/s", wire, 1, 1, func(int) units.Time { return 3*units.Microsecond + 37*units.Microsecond/2 }, 10 * units.Gbps},
		{"of weight 2 there", wire, 1, 2, func(int) units.Time { return 3*units.Microsecond + 37*units.Microsecond/2 }, 20 * units.Gbps},
		{"into a queue that others fill, up to p", wire, 1, 1, func(i int) units.Time { return units.Time(i) * 3 * wire }, 100 * units.Gbps},
		{"acknowledged at once", wire, 8, 1, func(int) units.Time { return 0 }, 100 * units.Gbps},
		{"held up for milliseconds, not below beta", units.Millisecond, 4, 1, func(int) units.Time { return 0 }, units.Gbps},
	} {
		l, err := New(paperParams(), c.weight)
		if err != nil {
			t.Fatal(err)
		}
		a := law.Ack{SentSeq: 9000, Acked: units.Bytes(1000 * c.each)}
		for i := int(c.each) - 1; i < 8; i += int(c.each) {
			a.MaxQD = c.queue(i)
			a.RTT = base + a.MaxQD
			a.Now = units.Time(i)*c.out + a.RTT
			a.AckedSeq = uint64(1000 * (i + 1))
			l.OnAck(&a)
		}
		if got := l.Rate(); math.Abs(float64(got)/float64(c.want)-1) > 1e-6 {
			t.Errorf("%s: joins at %v, want %v", c.name, got, c.want)
		}
	}
}

func TestParamsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  func(*Params)
	}{
		{"p", func(p *Params) { p.P = 0 }},
		{"k", func(p *Params) { p.K = -1 }},
		{"alpha", func(p *Params) { p.Alpha = 0 }},
		{"beta", func(p *Params) { p.Beta = p.Alpha }},
		{"beta", func(p *Params) { p.Beta = 0 }},
		{"m", func(p *Params) { p.M = 2 }},
		{"m", func(p *Params) { p.M = -0.1 }},
		{"m", func(p *Params) { p.M = math.NaN() }},
		{"max_rate", func(p *Params) { p.MaxRate = -1 }},
		{"mss", func(p *Params) { p.MSS = 0 }},
		{"initial_window", func(p *Params) { p.InitialWindow = 10 }},
	} {
		par := paperParams()
		tt.bad(&par)
		_, err := New(par, 1)
		if err == nil || len(err.Error()) <= len(tt.name) || err.Error()[:len(tt.name)] != tt.name {
			t.Errorf("%s: error %v, want one that names it", tt.name, err)
		}
	}
	if _, err := New(paperParams(), math.Inf(1)); err == nil {
		t.Error("an infinite weight was taken")
	}
}

func BenchmarkOnAck(b *testing.B) {
	l, err := New(paperParams(), 1)
	if err != nil {
		b.Fatal(err)
	}
	l.OnAck(&law.Ack{RTT: 28 * units.Microsecond, Acked: 8000, AckedSeq: 8000})
	ack := law.Ack{RTT: 28 * units.Microsecond, Acked: 1000}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		ack.MaxQD = units.Time(10+i%10) * units.Microsecond
		ack.Inflight = l.allow.Window
		l.OnAck(&ack)
	}
}
