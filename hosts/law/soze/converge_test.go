package soze

import (
	"fmt"
	"math"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/internal/maxmin"
	"github.com/headgate/headgate/units"
)

// setting is a fabric's speed. scale stretches all times, as in an emulated fabric, so that packets
// and products of rate and delay stay the same.
type setting struct {
	name        string
	rate        units.Rate
	scale       units.Time
	alphaToBeta units.Rate
	near, far   float64 // ACK delay of the two kinds of flows, µs before scaling
	m           float64 // 0 for the default
	unbounded   bool    // without the bound on m's loop gain
	deep        float64 // factor of the paper's p and k; 0 means 1
}

func (s setting) us(f float64) units.Time { return units.Time(f*1e6) * s.scale }

func (s setting) params() Params {
	if s.deep == 0 {
		s.deep = 1
	}
	p := param.For[Params](law.Flow{Rate: s.rate, MSS: modelMSS})
	p.P, p.K, p.Alpha, p.Beta = s.us(3*s.deep), s.us(37*s.deep), s.rate, s.rate/s.alphaToBeta
	if s.m != 0 {
		p.M = s.m
	}
	return p
}

// scene is a model and its expected shares.
type scene struct {
	set setting
	net *model
	// The longest round trip of a flow with the queue at its target, and the phase's weighted
	// max-min shares.
	want []float64
	rtt  units.Time
}

func newScene(s setting, links int) *scene {
	sc := &scene{set: s, net: &model{}}
	for range links {
		sc.net.link(s.rate, s.us(1))
	}
	return sc
}

func (sc *scene) join(w float64, path ...int) *modelFlow {
	l, err := New(sc.set.params(), w)
	if err != nil {
		panic(err)
	}
	if sc.set.unbounded {
		l.maxGain = math.Inf(1)
	}
	back := sc.set.us(sc.set.near)
	if len(sc.net.flows)%2 == 1 {
		back = sc.set.us(sc.set.far)
	}
	// The NIC is faster than the links, so that the queue is in the network.
	return sc.net.flow(sc.net.now, l, back, 2*sc.set.rate, path...)
}

// solve computes the expected rates of the running flows.
func (sc *scene) solve() {
	capacity := make([]float64, len(sc.net.links))
	for i, l := range sc.net.links {
		capacity[i] = float64(l.rate) * float64(modelMSS) / float64(modelFrame)
	}
	var flows []maxmin.Flow
	for _, f := range sc.net.flows {
		if !f.stopped {
			flows = append(flows, maxmin.Flow{Weight: f.law.Weight(), Path: f.path})
		}
	}
	a, err := maxmin.Solve(capacity, flows)
	if err != nil {
		panic(err)
	}
	sc.want = sc.want[:0]
	sc.rtt = 0
	next := 0
	for _, f := range sc.net.flows {
		share := 0.0
		if !f.stopped {
			share = a.Rate[next]
			next++
			base := f.back + units.Time(len(f.path))*sc.set.us(1)
			sc.rtt = max(sc.rtt, base+f.law.target.Delay(share/f.law.Weight()))
		}
		sc.want = append(sc.want, share)
	}
}

type outcome struct {
	rtts  float64 // until all flows stay within 5 % of their shares, in loaded round trips
	worst float64 // error of a flow's mean rate over the second half
	util  float64 // of the busiest link over the second half
	peak  units.Time
	swing units.Time // of the echoed delay over the last quarter
}

// watch runs the scene for n round trips and compares rates with shares.
func (sc *scene) watch(rtts int) outcome {
	sc.solve()
	m, start := sc.net, sc.net.now
	var out outcome
	for _, l := range m.links {
		l.peak = 0
	}
	n := len(m.flows)
	last, half := make([]units.Bytes, n), make([]units.Bytes, n)
	for i, f := range m.flows {
		last[i] = f.delivered()
	}
	sent := make([]units.Bytes, len(m.links))
	lo, hi := units.MaxTime, units.Time(0)
	// Each rate's window holds at least 200 packets of the smallest share, so that one packet more
	// or less does not count as an error.
	least := math.Inf(1)
	for _, w := range sc.want {
		if w > 0 {
			least = min(least, w)
		}
	}
	window := max(2*sc.rtt, units.Time(200*8*float64(modelMSS)/least*float64(units.Second)))
	steps := max(int(units.Time(rtts)*sc.rtt/window), 8)
	var halfway units.Time
	for k := 1; k <= steps; k++ {
		for range 20 {
			m.run(m.now + window/20)
			if k > steps*3/4 {
				for _, f := range m.flows {
					if !f.stopped {
						lo, hi = min(lo, f.qd), max(hi, f.qd)
					}
				}
			}
		}
		for i, f := range m.flows {
			d := f.delivered()
			rate := float64(d-last[i]) * 8 / (window / 20 * 20).Seconds()
			last[i] = d
			if w := sc.want[i]; w > 0 && math.Abs(rate/w-1) > 0.05 {
				out.rtts = float64(m.now-start) / float64(sc.rtt)
			}
		}
		if k == steps/2 {
			halfway = m.now
			copy(half, last)
			for i, l := range m.links {
				sent[i] = l.sent
			}
		}
	}
	span := (m.now - halfway).Seconds()
	for i := range m.flows {
		if w := sc.want[i]; w > 0 {
			out.worst = max(out.worst, math.Abs(float64(last[i]-half[i])*8/span/w-1))
		}
	}
	for i, l := range m.links {
		out.util = max(out.util, float64(l.sent-sent[i])*8/span*float64(modelFrame)/float64(modelMSS)/float64(l.rate))
		out.peak = max(out.peak, l.peak)
	}
	out.swing = hi - lo
	return out
}

var (
	paper    = setting{name: "100 Gb/s", rate: 100 * units.Gbps, scale: 1, alphaToBeta: 100, near: 6, far: 10}
	emulated = setting{name: "50 Mb/s times 2000", rate: 50 * units.Mbps, scale: 2000, alphaToBeta: 100, near: 6, far: 10}
)

// story is a sequence of changes, each watched until it has settled.
func story(s setting) (steps []string, outcomes []outcome) {
	sc := newScene(s, 1)
	note := func(what string, rtts int) {
		steps = append(steps, what)
		outcomes = append(outcomes, sc.watch(rtts))
	}
	first := sc.join(1, 0)
	note("one flow alone", 50)
	second := sc.join(2, 0)
	note("weight 2 joins", 50)
	third := sc.join(4, 0)
	sc.join(1, 0)
	note("weights 4 and 1 join", 50)
	must(third.law.SetWeight(1))
	note("weight 4 becomes 1", 50)
	must(first.law.SetWeight(1.5))
	note("weight 1 becomes 1.5", 50)
	second.stopped = true
	note("weight 2 leaves", 50)
	for range 8 {
		sc.join(1, 0)
	}
	note("eight join at once", 50)
	return steps, outcomes
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestConvergence(t *testing.T) {
	settings := []setting{paper, emulated}
	for _, ratio := range []units.Rate{20, 1000} {
		s := paper
		s.name, s.alphaToBeta = fmt.Sprintf("100 Gb/s, alpha/beta %d", ratio), ratio
		settings = append(settings, s)
	}
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			steps, outcomes := story(s)
			for i, o := range outcomes {
				t.Logf("%-22s %4.1f RTT, mean rates within %.2f %%, utilisation %.1f %%, longest queue %v, echo swings %v",
					steps[i], o.rtts, 100*o.worst, 100*o.util, o.peak, o.swing)
				if o.rtts > 16 {
					t.Errorf("%s: %.1f RTT to within 5 %%, want at most 16", steps[i], o.rtts)
				}
				if o.worst > 0.02 {
					t.Errorf("%s: a mean rate is %.2f %% off its share", steps[i], 100*o.worst)
				}
				if o.util < 0.98 {
					t.Errorf("%s: utilisation %.3f", steps[i], o.util)
				}
			}
		})
	}
}

// Söze Fig. 17: the bottleneck of flows 2 to 4 moves from S2 to S1 as flow 1's weight grows. The
// same with three links in a row, where the queues of a path add up.
func TestWeightedMaxMinOverTwoSwitches(t *testing.T) {
	for _, s := range []setting{paper, emulated} {
		t.Run(s.name, func(t *testing.T) {
			sc := newScene(s, 2)
			first := sc.join(1, 0)
			for range 3 {
				sc.join(1, 0, 1)
			}
			sc.join(1, 1)
			sc.join(1, 1)
			for _, w := range []float64{1, 2, 4, 8} {
				must(first.law.SetWeight(w))
				o := sc.watch(80)
				t.Logf("flow 1 at weight %v: %.1f RTT, shares within %.2f %%, longest queue %v", w, o.rtts, 100*o.worst, o.peak)
				if o.rtts > 40 || o.worst > 0.03 {
					t.Errorf("flow 1 at weight %v: %.1f RTT to within 5 %%, mean rates %.2f %% off", w, o.rtts, 100*o.worst)
				}
			}
		})
	}
}

func TestParkingLot(t *testing.T) {
	for _, s := range []setting{paper, emulated} {
		t.Run(s.name, func(t *testing.T) {
			sc := newScene(s, 3)
			sc.join(1, 0, 1, 2) // equal bottlenecks in a row: their queues add up
			for l := range 3 {
				sc.join(2, l)
			}
			o := sc.watch(80)
			t.Logf("%.1f RTT, shares within %.2f %%", o.rtts, 100*o.worst)
			if o.rtts > 40 || o.worst > 0.04 {
				t.Errorf("%.1f RTT to within 5 %%, mean rates %.2f %% off", o.rtts, 100*o.worst)
			}
		})
	}
}

// Shares below beta, and shares of a fifth to half of a packet per round trip, with beta above and
// below them: weights of 1 and 2 give shares within 5 %.
func TestSmallShares(t *testing.T) {
	below := paper
	below.alphaToBeta = 12
	slow := func(ratio units.Rate, deep float64) setting {
		return setting{name: "1 Gb/s", rate: units.Gbps, scale: 1, alphaToBeta: ratio, near: 6, far: 10, deep: deep}
	}
	for _, tt := range []struct {
		name  string
		set   setting
		flows int
		bound float64
	}{
		{"shares below beta", below, 200, 0.1},
		{"beta 3.2 times the share", slow(50, 8), 100, 0.05},
		{"beta 1.6 times the share", slow(100, 8), 100, 0.05},
		{"beta half of the share", slow(300, 8), 100, 0.05},
		{"beta a sixth of the share", slow(1000, 8), 100, 0.05},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc := newScene(tt.set, 1)
			for i := range tt.flows {
				sc.join(float64(1+i%2), 0)
			}
			o := sc.watch(10)
			perRTT := sc.want[0] * sc.rtt.Seconds() / 8 / float64(modelMSS)
			t.Logf("%.2f packets per RTT at weight 1: mean rates within %.2f %%, utilisation %.1f %%, longest queue %v", perRTT, 100*o.worst, 100*o.util, o.peak)
			if o.worst > tt.bound || o.util < 0.98 {
				t.Errorf("mean rates %.2f %% off, utilisation %.3f", 100*o.worst, o.util)
			}
		})
	}
}

// BenchmarkConvergence reports how many loaded round trips each change of the story takes
// until all rates stay within 5 % of their weighted shares.
func BenchmarkConvergence(b *testing.B) {
	for _, s := range []setting{paper, emulated} {
		for _, m := range []float64{0.1, DefaultM} {
			s.m = m
			b.Run(fmt.Sprintf("%s/m=%v", s.name, m), func(b *testing.B) {
				var sum, worst float64
				for b.Loop() {
					sum, worst = 0, 0
					_, outcomes := story(s)
					for _, o := range outcomes {
						sum += o.rtts / float64(len(outcomes))
						worst = max(worst, o.rtts)
					}
				}
				b.ReportMetric(sum, "RTTs-mean")
				b.ReportMetric(worst, "RTTs-worst")
			})
		}
	}
}
