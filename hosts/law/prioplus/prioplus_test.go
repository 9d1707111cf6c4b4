package prioplus_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

var (
	_ prioplus.DelayLaw = (*swift.Law)(nil)
	_ prioplus.DelayLaw = (*ledbat.Law)(nil)
)

// fake is a delay law that records its calls.
type fake struct {
	law.Law
	window       float64
	scale, extra float64
	base, target units.Time
	delays       []units.Time
	events       []law.Event
}

func (f *fake) OnDelay(_ *law.Ack, d units.Time)  { f.delays = append(f.delays, d) }
func (f *fake) SetTarget(base, target units.Time) { f.base, f.target = base, target }
func (f *fake) SetIncrease(scale, extra float64)  { f.scale, f.extra = scale, extra }
func (f *fake) Window() float64                   { return f.window }
func (f *fake) SetWindow(w float64)               { f.window = w }
func (f *fake) OnEvent(e law.Event, _ units.Time) { f.events = append(f.events, e) }
func (f *fake) Timer() units.Time                 { return units.MaxTime }
func (f *fake) Allowance() law.Allowance {
	return law.Allowance{Rate: 100 * units.Gbps, Window: units.Bytes(f.window)}
}

// 100 Gb/s and 12 µs: 150 KB. The channel has a target of 20 µs and a limit of 24 µs.
func params() prioplus.Params {
	p := defaults(law.Flow{
		Rate: 100 * units.Gbps, BaseRTT: 12 * us, MSS: 1000, Target: 20 * us, Limit: 24 * us, Rand: rand.New(rand.NewPCG(1, 2)),
	}, prioplus.Low)
	p.LinearStart = 15000
	return p
}

type rig struct {
	t *testing.T
	*prioplus.Law
	f   *fake
	now units.Time
	seq uint64
}

func newRig(t *testing.T, p prioplus.Params) *rig {
	t.Helper()
	f := &fake{}
	l, err := prioplus.New(f, p)
	if err != nil {
		t.Fatal(err)
	}
	l.OnEvent(law.Start, 0)
	return &rig{t: t, Law: l, f: f}
}

// running returns a rig that sends with a window and has just begun a round.
func running(t *testing.T, p prioplus.Params, window float64) *rig {
	p.StartNow = true
	r := newRig(t, p)
	r.f.window = window
	return r
}

// within acknowledges a packet that does not end the round; round acknowledges one that does.
func (r *rig) within(rtt units.Time) {
	r.now += us
	r.OnAck(&law.Ack{Now: r.now, RTT: rtt, Acked: 1000, AckedSeq: r.seq, SentSeq: r.seq + 100000})
}

func (r *rig) round(rtt units.Time) {
	r.now += us
	r.seq += 200000
	r.OnAck(&law.Ack{Now: r.now, RTT: rtt, Acked: 1000, AckedSeq: r.seq, SentSeq: r.seq + 100000})
}

func (r *rig) probe(rtt units.Time) {
	r.OnEvent(law.ProbeSent, r.now)
	if a := r.Allowance(); a != (law.Allowance{}) {
		r.t.Errorf("allowance with a probe on its way: %+v", a)
	}
	r.now += rtt
	r.OnAck(&law.Ack{Now: r.now, RTT: rtt, Probe: true, AckedSeq: r.seq, SentSeq: r.seq})
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want)+1e-6 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestStartsWithAProbe(t *testing.T) {
	r := newRig(t, params())
	if r.f.base != 12*us || r.f.target != 20*us {
		t.Errorf("base %v and target %v were set underneath", r.f.base, r.f.target)
	}
	a := r.Allowance()
	if a.Rate != 0 || a.Window != 0 || a.Probe < 1 || a.Probe > 12*us {
		t.Errorf("allowance at the start: %+v, want a probe within a base round trip", a)
	}
	r.probe(12 * us)
	if r.Stopped() || r.f.window != 15000 {
		t.Errorf("after a probe of an empty path: stopped %v, window %v, want W_LS", r.Stopped(), r.f.window)
	}
}

func TestHighPriorityStartsWithoutAProbe(t *testing.T) {
	p := defaults(law.Flow{
		Rate: 100 * units.Gbps, BaseRTT: 12 * us, MSS: 1000, Target: 20 * us, Limit: prioplus.NoLimit, Rand: rand.New(rand.NewPCG(1, 2)),
	}, prioplus.High)
	r := newRig(t, p)
	if r.Stopped() || r.f.window != 150000 {
		t.Errorf("stopped %v, window %v, want the bandwidth-delay product", r.Stopped(), r.f.window)
	}
	for range 5 {
		r.within(units.Second)
	}
	if r.Stopped() {
		t.Error("a priority without a limit stopped")
	}
}

// §4.4: W_LS is the bandwidth-delay product, a quarter or an eighth of it.
func TestLinearStartOfLevels(t *testing.T) {
	for level, want := range map[prioplus.Level]float64{prioplus.High: 150000, prioplus.Middle: 37500, prioplus.Low: 18750} {
		p := defaults(law.Flow{
			Rate: 100 * units.Gbps, BaseRTT: 12 * us, MSS: 1000, Target: 20 * us, Limit: 24 * us, Rand: rand.New(rand.NewPCG(1, 2)),
		}, level)
		p.StartNow = true
		if r := newRig(t, p); r.f.window != want {
			t.Errorf("level %d: W_LS = %v, want %v", level, r.f.window, want)
		}
	}
}

// Lines 26 to 36.
func TestProbeAnswers(t *testing.T) {
	r := newRig(t, params())
	r.probe(24 * us) // at the limit: line 28
	if !r.Stopped() {
		t.Fatal("resumed at the limit")
	}
	for range 100 {
		wait := r.Allowance().Probe - r.now
		if wait < 4*us || wait >= 16*us {
			t.Fatalf("next probe after %v, want delay − D_target = 4 µs and up to a base RTT more", wait)
		}
		r.probe(24 * us)
	}
	r.probe(15 * us) // between base and target: line 34
	if r.Stopped() || r.f.window != 1000 {
		t.Errorf("stopped %v, window %v, want one packet", r.Stopped(), r.f.window)
	}
	if len(r.f.delays) != 0 {
		t.Errorf("probes were handed to the law underneath: %v", r.f.delays)
	}
	r.within(15 * us)
	if len(r.f.delays) != 1 {
		t.Error("data was not")
	}
}

// §4.2.1: probes spread over a base round trip.
func TestProbesAvoidCollisions(t *testing.T) {
	var buckets [12]int
	p := params()
	for range 1200 {
		r := newRig(t, p)
		buckets[min(r.Allowance().Probe/us, 11)]++
	}
	for i, n := range buckets {
		if n < 60 || n > 140 {
			t.Errorf("%d of 1200 flows probe in µs %d of 12", n, i)
		}
	}
}

// Line 7 and the filter of §4.3.1.
func TestTwoInARow(t *testing.T) {
	r := running(t, params(), 50000)
	for range 10 {
		r.within(30 * us)
		r.within(23 * us)
	}
	if r.Stopped() {
		t.Fatal("single delays beyond the limit stopped the flow")
	}
	r.within(24 * us)
	if r.Stopped() {
		t.Fatal("one delay at the limit stopped the flow")
	}
	r.within(24 * us)
	if !r.Stopped() {
		t.Fatal("two in a row did not")
	}
	// Lines 26 to 36 do not change the count. Only data with a delay below the limit (line 21) restarts it.
	r.probe(20 * us)
	r.within(24 * us)
	if !r.Stopped() {
		t.Error("a flow that came back into a full channel sends on after one delay beyond the limit")
	}
	r.probe(20 * us)
	r.within(23 * us)
	r.within(24 * us)
	if r.Stopped() {
		t.Error("one delay beyond the limit, after one below, stopped a flow that came back")
	}
	p := params()
	p.Filter = 1
	r = running(t, p, 50000)
	r.within(24 * us)
	if !r.Stopped() {
		t.Error("with a filter of one, one did not")
	}
}

// Lines 8 to 11.
func TestCardinalityEstimate(t *testing.T) {
	r := running(t, params(), 10000)
	r.within(24 * us)
	near(t, "#flow after one delay", r.Flows(), 1)
	r.within(24 * us)
	near(t, "#flow = delay·LineRate/cwnd", r.Flows(), 30)
	near(t, "W_AI", r.f.scale, 1.0/30)
	r.within(32 * us) // sent before the stop
	near(t, "#flow is the largest seen", r.Flows(), 40)
	r.within(26 * us)
	near(t, "#flow is the largest seen", r.Flows(), 40)
	first := r.Allowance().Probe
	if first < r.now+6*us || first >= r.now+18*us {
		t.Errorf("probe after %v", first-r.now)
	}
	r.within(15 * us)
	if !r.Stopped() || r.Allowance().Probe != first {
		t.Error("data sent before the stop resumed the flow or moved its probe")
	}
	r.now = first
	r.probe(12 * us)
	near(t, "W_LS/#flow", r.f.window, 15000.0/40)
}

// Windows of less than half a packet are not used for the estimate.
func TestTinyWindows(t *testing.T) {
	r := running(t, params(), 200)
	r.within(24 * us)
	r.within(24 * us)
	near(t, "#flow", r.Flows(), 600)
	r.probe(12 * us)
	near(t, "window", r.f.window, 25)
	r.within(24 * us)
	near(t, "#flow", r.Flows(), 600)
	if !r.Stopped() {
		t.Error("data that leaves a fortieth of a packet did not stop the flow")
	}
}

// §4.3.1 counts "each RTT that observes a delay equal to base RTT". A flow that took the queue of higher priorities for
// its own 1500 times sends a packet every hundred round trips. When it finds the path empty, all of these round trips
// count.
func TestEveryRoundTripCounts(t *testing.T) {
	for _, c := range []struct {
		trips  units.Time
		window float64 // afterwards
		flows  float64
		stops  bool // because it is at most a tenth of a packet
	}{
		{1, 2 * 10, 1500, true},
		{9, 10 * 10, 1500, true},
		{100, 10*10 + 10 + 20 + 40 + 80 + 160 + 320 + 640, 1500.0 / 128, false}, // until it is one packet
	} {
		r := running(t, params(), 100)
		r.within(60 * us)
		r.within(60 * us) // 750 KB in flight, over half a packet
		near(t, "#flow", r.Flows(), 1500)
		r.probe(12 * us)
		near(t, "window after the probe", r.f.window, 10)
		r.now += c.trips*12*us - us
		r.round(12 * us)
		if r.Stopped() != c.stops {
			t.Errorf("stopped after %d round trips: %v", c.trips, r.Stopped())
		}
		near(t, "window", r.f.window, c.window)
		near(t, "#flow", r.Flows(), c.flows)
	}
}

// Lines 14 to 17 and 29 to 32: W_LS/#flow per round trip, count-down, then halving.
func TestLinearStartAndCountDown(t *testing.T) {
	r := running(t, params(), 10000)
	r.within(32 * us)
	r.within(32 * us) // #flow 40, count-down 150000/15000 = 10
	r.probe(12 * us)
	w, flows := 15000.0/40, 40.0
	near(t, "window", r.f.window, w)
	for i := range 20 {
		w += 15000 / flows
		if i >= 9 { // the probe took the first of ten
			flows = max(flows/2, 1)
		}
		r.round(13 * us) // within the tolerance of 1 µs
		near(t, "window", r.f.window, w)
		near(t, "#flow", r.Flows(), flows)
		r.within(12 * us)
		near(t, "window within a round trip", r.f.window, w)
	}
	near(t, "#flow in the end", r.Flows(), 1)
}

// Lines 5, 6, 18 and 19: the step to the target within one round trip, then one round trip without
// a step.
func TestDualRTT(t *testing.T) {
	r := running(t, params(), 50000)
	for i := range 6 {
		r.round(16 * us)
		want := 0.0
		if i%2 == 0 {
			want = (20.0 - 16) / 16 * 50000
		}
		near(t, "extra step", r.f.extra, want)
		r.within(14 * us)
		near(t, "extra step within a round trip", r.f.extra, want)
	}
	r.round(13100 * units.Nanosecond)
	near(t, "at most half the window", r.f.extra, min(25000, (20-13.1)/13.1*50000))
	p := params()
	p.Target, p.Limit = 200*us, 204*us
	r = running(t, p, 50000)
	r.round(16 * us)
	near(t, "at most half the window", r.f.extra, 25000)
	r.round(250 * us)
	r.round(201 * us)
	near(t, "above the target", r.f.extra, 0)
	p = params()
	p.EveryRTT = true
	r = running(t, p, 50000)
	for range 3 {
		r.round(16 * us)
		near(t, "extra step of the ablation", r.f.extra, 12500)
	}
}

// A stop ends the extra step, and a resumed flow begins with a first round trip.
func TestResumeResetsTheRound(t *testing.T) {
	r := running(t, params(), 50000)
	r.round(16 * us)
	if r.f.extra == 0 {
		t.Fatal("no adaptive increase")
	}
	r.within(30 * us)
	r.within(30 * us)
	near(t, "extra step after a stop", r.f.extra, 0)
	r.probe(16 * us)
	r.round(16 * us)
	if r.f.extra == 0 {
		t.Error("no adaptive increase in the first round trip after a probe")
	}
}

func TestWindowBounds(t *testing.T) {
	r := running(t, params(), 1e9)
	r.within(19 * us)
	near(t, "at most what fills the path to the target", r.f.window, 250000)
	r.f.window = 100
	r.within(21 * us)
	if !r.Stopped() {
		t.Error("a tenth of a packet did not stop the flow")
	}
	if a := r.Allowance(); a.Probe < r.now || a.Probe >= r.now+12*us {
		t.Errorf("probe %v after", a.Probe-r.now)
	}
}

func TestLosses(t *testing.T) {
	r := newRig(t, params())
	at := r.Allowance().Probe
	r.OnEvent(law.Loss, 0)
	if r.Allowance().Probe != at {
		t.Error("a loss moved a probe that is due")
	}
	r.OnEvent(law.ProbeSent, at)
	r.OnEvent(law.Loss, units.Millisecond)
	if p := r.Allowance().Probe; p < units.Millisecond || p >= units.Millisecond+12*us {
		t.Errorf("a lost probe is sent again at %v", p)
	}
	r.probe(12 * us)
	r.OnEvent(law.Loss, 2*units.Millisecond)
	if n := len(r.f.events); n != 2 || r.f.events[1] != law.Loss {
		t.Errorf("events underneath: %v", r.f.events)
	}
}

func TestOneWayDelays(t *testing.T) {
	p := params()
	p.OneWay, p.Target, p.Limit = 7*us, 15*us, 19*us
	p.StartNow = true
	r := newRig(t, p)
	r.f.window = 10000
	r.OnAck(&law.Ack{RTT: 90 * us, Delay: 12 * us, Acked: 1000, AckedSeq: 1000, SentSeq: 1000})
	near(t, "extra step: (D_target − delay) over the round trip", r.f.extra, 3.0/17*10000)
	r.OnAck(&law.Ack{RTT: 17 * us, Acked: 1000, AckedSeq: 900, SentSeq: 1000})
	if d := r.f.delays[len(r.f.delays)-1]; d != 12*us {
		t.Errorf("without a receiver's clock the delay is %v, want the round trip less the way back", d)
	}
	for range 2 {
		r.OnAck(&law.Ack{RTT: 90 * us, Delay: 19 * us, Acked: 1000, AckedSeq: 900, SentSeq: 1000})
	}
	near(t, "#flow", r.Flows(), 24*12500.0/10000)
}

func TestSetChannel(t *testing.T) {
	r := running(t, params(), 50000)
	if err := r.SetChannel(40*us, 44*us); err != nil || r.f.target != 40*us {
		t.Errorf("target %v, %v", r.f.target, err)
	}
	r.within(30 * us)
	r.within(30 * us)
	if r.Stopped() {
		t.Error("stopped by the old limit")
	}
	if r.SetChannel(13*us, 20*us) == nil || r.SetChannel(30*us, 30*us) == nil {
		t.Error("a channel that is none was taken")
	}
}

func TestParams(t *testing.T) {
	for name, bad := range map[string]func(*prioplus.Params){
		"line_rate":     func(p *prioplus.Params) { p.LineRate = 0 },
		"base_rtt":      func(p *prioplus.Params) { p.BaseRTT = 0 },
		"one_way_delay": func(p *prioplus.Params) { p.OneWay = 13 * us },
		"mss":           func(p *prioplus.Params) { p.MSS = 0 },
		"target":        func(p *prioplus.Params) { p.Target = 13 * us },
		"limit":         func(p *prioplus.Params) { p.Limit = 20 * us },
		"level":         func(p *prioplus.Params) { p.Level = 7 },
		"linear_start":  func(p *prioplus.Params) { p.LinearStart = -1 },
		"tolerance":     func(p *prioplus.Params) { p.Tolerance = -1 },
		"filter":        func(p *prioplus.Params) { p.Filter = -1 },
		"rand":          func(p *prioplus.Params) { p.Rand = nil },
	} {
		p := params()
		bad(&p)
		if _, err := prioplus.New(&fake{}, p); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
	if _, err := prioplus.New(nil, params()); err == nil {
		t.Error("no law underneath was taken")
	}
}

func BenchmarkOnAck(b *testing.B) {
	p := params()
	p.StartNow = true
	under, err := swift.New(param.For[swift.Params](law.Flow{Rate: p.LineRate, BaseRTT: p.BaseRTT, MSS: p.MSS}))
	if err != nil {
		b.Fatal(err)
	}
	l, err := prioplus.New(under, p)
	if err != nil {
		b.Fatal(err)
	}
	l.OnEvent(law.Start, 0)
	a := law.Ack{Acked: 1000, Inflight: 1 << 30}
	b.ReportAllocs()
	for b.Loop() {
		a.Now += 80 * units.Nanosecond
		a.RTT = 15*us + a.Now%(6*us)
		a.AckedSeq += 1000
		a.SentSeq = a.AckedSeq + 150000
		l.OnAck(&a)
	}
}

// defaults returns the parameters of a flow with the given start level.
func defaults(f law.Flow, level prioplus.Level) prioplus.Params {
	p := prioplus.Params{Level: level}
	param.Defaults(func(s *param.Set) { p.Visit(s, &f) })
	return p
}
