// Package timely is TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the
// Datacenter", SIGCOMM 2015, Algorithm 1): a rate that follows the gradient of the round
// trip between two thresholds. The paper updates once per completion event, a segment of
// 16 to 64 KB; this law updates once per round trip, as the public RoCE simulators do.
package timely

import (
	"cmp"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Law is TIMELY for one flow. The flow's sender owns it.
type Law struct {
	law.Untimed
	par    Params
	rate   float64 // bits per second
	round  law.Round
	prev   units.Time // round trip at the last update, 0 before the first
	diff   float64    // moving average of the change between round trips, picoseconds
	rises  int        // increases in a row by the gradient
	losses law.LossGate
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	return &Law{par: p, rate: float64(p.StartRate)}, nil
}

// OnAck implements law.Law: Algorithm 1 with the round trip of the acknowledgement that
// ends a round.
func (l *Law) OnAck(a *law.Ack) {
	begun := l.round.Begun()
	if !l.round.Passed(a) && begun || a.Acked <= 0 {
		return
	}
	if l.prev == 0 {
		l.prev = a.RTT
		return
	}
	l.diff = (1-l.par.Alpha)*l.diff + l.par.Alpha*float64(a.RTT-l.prev) // lines 1 and 3
	l.prev = a.RTT                                                      // line 2
	gradient := l.diff / float64(l.par.MinRTT)                          // line 4
	switch {
	case a.RTT < l.par.LowRTT && !l.par.HyperBelow: // lines 5 to 7
		l.rises = 0
		l.rate += float64(l.par.Increase)
	case a.RTT > l.par.HighRTT: // lines 8 to 10
		l.rises = 0
		l.decrease(l.par.Beta * (1 - float64(l.par.HighRTT)/float64(a.RTT)))
	case gradient <= 0 || a.RTT < l.par.LowRTT: // lines 11 to 13, hyperactive increase of §4.4
		l.rises++
		step := float64(l.par.Increase)
		if l.rises >= l.par.HyperAfter {
			step *= l.par.HyperFactor
		}
		l.rate += step
	default: // line 15
		l.rises = 0
		l.decrease(l.par.Beta * gradient)
	}
	l.bound()
}

// decrease lowers the rate by a fraction, at most MaxDecrease. If the base round trip is short compared with
// the queueing delay, the gradient of one burst is many times 1/β.
func (l *Law) decrease(part float64) { l.rate *= 1 - min(part, l.par.MaxDecrease) }

func (l *Law) bound() {
	l.rate = min(max(l.rate, float64(l.par.MinRate)), float64(l.par.LineRate))
}

// OnEvent implements law.Law. The paper's fabric is lossless; a loss halves the rate, once
// per round trip.
func (l *Law) OnEvent(e law.Event, now units.Time) {
	if l.losses.Answers(e, now, max(l.prev, l.par.MinRTT)) {
		l.rate /= 2
		l.bound()
	}
}

// Allowance implements law.Law. TIMELY has no window.
func (l *Law) Allowance() law.Allowance {
	return law.Allowance{Rate: max(units.Rate(l.rate), 1), Window: law.Unbounded}
}

// Params are the parameters of the law; Visit says what each is. Defaults are the paper's (§6); increases are
// scaled from its 10 Gb/s to LineRate.
type Params struct {
	LineRate           units.Rate
	MinRTT             units.Time
	MinRate, StartRate units.Rate
	LowRTT, HighRTT    units.Time
	Alpha, Beta        float64
	Increase           units.Rate
	HyperAfter         int
	HyperFactor        float64
	MaxDecrease        float64
	HyperBelow         bool
}

// Visit visits the parameters with the paper's defaults.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	p.visit(s, f, Params{
		MinRTT: f.BaseRTT, LowRTT: f.BaseRTT + f.Stretch(30*units.Microsecond), HighRTT: f.BaseRTT + f.Stretch(480*units.Microsecond),
		HyperAfter: 5, MaxDecrease: 0.5,
	})
}

// VisitNS3 visits the parameters with those of the public HPCC simulator
// (alibaba-edu/High-Precision-Congestion-Control, simulation/run.py --cc timely, and UpdateRateTimely of
// rdma-hw.cc). The times are 20, 50 and 500 µs on every path, and MIN_RATE is 1 Gb/s. At 100 Gb/s steps are 100
// Mb/s, and 500 Mb/s from the sixth increase in a row on. A decrease has no bound.
func (p *Params) VisitNS3(s *param.Set, f *law.Flow) {
	us := f.Stretch(units.Microsecond)
	p.visit(s, f, Params{
		MinRTT: 20 * us, LowRTT: 50 * us, HighRTT: 500 * us, MinRate: min(units.Gbps, f.Rate), HyperAfter: 6, MaxDecrease: 1, HyperBelow: true,
	})
}

func (p *Params) visit(s *param.Set, f *law.Flow, def Params) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Of(s, "min_rtt", &p.MinRTT, def.MinRTT, param.Above(0), "time that normalises the gradient; default the base round trip, 20us in the paper")
	param.Of(s, "min_rate", &p.MinRate, cmp.Or(def.MinRate, max(p.LineRate/1000, 1)), param.AboveTo(0, p.LineRate), "floor of the rate; default line rate / 1000")
	param.Of(s, "start_rate", &p.StartRate, p.LineRate, param.From(p.MinRate, p.LineRate), "rate of a flow that starts; default the line rate, as RDMA NICs do, where the paper has it over the host's flows")
	param.Of(s, "low_rtt", &p.LowRTT, def.LowRTT+p.MinRTT-def.MinRTT, param.AtLeast(0), "round trip below which the flow always increases; default min_rtt + 30us, the paper's 50us for its 20us")
	param.Of(s, "high_rtt", &p.HighRTT, def.HighRTT+p.MinRTT-def.MinRTT, param.Above(p.LowRTT), "round trip above which the flow always decreases; default min_rtt + 480us, the paper's 500us for its 20us")
	param.Of(s, "alpha", &p.Alpha, 0.875, param.AboveTo(0, 1), "α, the weight of a new round trip in the difference's moving average")
	param.Of(s, "beta", &p.Beta, 0.8, param.AboveTo(0, 1), "β, the factor of decrease")
	param.Of(s, "increase", &p.Increase, max(p.LineRate/1000, 1), param.Above(0), "δ; default line rate / 1000, the paper's 10 Mb/s at 10 Gb/s")
	param.Of(s, "hyper_after", &p.HyperAfter, def.HyperAfter, param.AtLeast(1), "N of hyperactive increase: increases in a row by the gradient before a step grows")
	param.Of(s, "hyper_factor", &p.HyperFactor, 5, param.From(1, 1000), "factor of a step after that")
	param.Of(s, "max_decrease", &p.MaxDecrease, def.MaxDecrease, param.AboveTo(0.0, 1), "the largest part of the rate that one round trip takes, as in the authors' published code; 1 for the paper's Algorithm 1, in which one burst on a short path takes all of it")
	param.Bool(s, "hyper_below", &p.HyperBelow, def.HyperBelow, "increases below low_rtt, too, count for and grow by hyperactive increase, as in the public HPCC simulator")
}
