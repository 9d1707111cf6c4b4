// Package hpcc is HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Algorithm 1). It
// sets the window from in-band telemetry so that the bytes in flight on the busiest link of the path are a
// fraction η of the link's bandwidth-delay product.
package hpcc

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Law is HPCC for one flow. The flow's sender owns it.
type Law struct {
	law.Untimed
	par   Params
	t     float64 // T, picoseconds
	wInit float64 // W_init, bytes

	w, wc float64 // W and the reference window W^c, bytes
	u     float64 // U, the utilisation's moving average
	stage int     // incStage
	round law.Round

	path law.Path // L: the links as of the last acknowledgement
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	// A flow starts with a window of B·T, which fills its path. So U starts at 1, as in the authors' public
	// simulator. If it started at 0, U would show an empty path for a round trip, and the flow would not yield.
	l := &Law{par: p, t: float64(p.BaseRTT), wInit: float64(p.LineRate.BytesIn(p.BaseRTT)), u: 1}
	l.w, l.wc = l.wInit, l.wInit // §3.2: W_init = B·T
	return l, nil
}

// OnAck implements law.Law: NewAck, lines 19 to 27. An acknowledgement without telemetry is ignored. One of
// another path than the one before only restarts the measurement.
func (l *Law) OnAck(a *law.Ack) {
	hops, ok := l.path.Follows(a, &l.round)
	if !ok || !l.measure(hops) {
		return
	}
	l.compute(l.round.Passed(a))
	l.path.Keep(hops)
}

// measure is MeasureInflight, lines 1 to 9. It returns false if no link's clock has moved.
func (l *Law) measure(hops []law.Hop) bool {
	u, tau := 0.0, 0.0
	for i := range hops {
		c := l.path.Change(i, &hops[i]) // line 4, over B
		if v := c.Sent + float64(min(hops[i].Queue, l.path.Queue(i)))*c.PerByte/l.t; c.Span > 0 && (v > u || tau == 0) {
			u, tau = v, c.Span // lines 5 to 7
		}
	}
	if tau == 0 {
		return false
	}
	tau = min(tau, l.t)               // line 8
	l.u = (1-tau/l.t)*l.u + tau/l.t*u // line 9
	return true
}

// compute is ComputeWind, lines 10 to 18, with the reference window moved once per round
// trip (§3.2, "reference window").
func (l *Law) compute(update bool) {
	k := l.u / l.par.Eta
	stage := 0
	if k >= 1 || l.stage >= l.par.MaxStage {
		l.w = l.wc/max(k, 1e-3) + float64(l.par.Increase)
	} else {
		l.w = l.wc + float64(l.par.Increase)
		stage = l.stage + 1
	}
	l.w = min(max(l.w, float64(l.par.MSS), float64(l.par.MinRate.BytesIn(l.par.BaseRTT))), l.wInit)
	if update {
		l.stage, l.wc = stage, l.w
	}
}

// OnEvent implements law.Law. HPCC answers telemetry alone; go-back-N sends again.
func (l *Law) OnEvent(law.Event, units.Time) {}

// Allowance implements law.Law: line 26, R = W/T.
func (l *Law) Allowance() law.Allowance {
	return law.Allowance{Rate: law.Pace(l.w, l.t), Window: units.Bytes(l.w)}
}

// Params are the parameters of the law; Visit describes each.
type Params struct {
	LineRate units.Rate
	BaseRTT  units.Time
	MSS      units.Bytes
	Eta      float64
	MaxStage int
	Flows    int
	Increase units.Bytes
	MinRate  units.Rate
}

// Visit visits the parameters with the paper's defaults.
func (p *Params) Visit(s *param.Set, f *law.Flow) { p.visit(s, f, 5, (*Params).step) }

// VisitNS3 visits the parameters with those of the public HPCC simulator (alibaba-edu/High-Precision-Congestion-Control,
// simulation/run.py --cc hp): MI_THRESH 0, RATE_AI 10 Mb/s per 25 Gb/s, MIN_RATE 1 Gb/s. Its GLOBAL_T is base_rtt.
func (p *Params) VisitNS3(s *param.Set, f *law.Flow) {
	p.visit(s, f, 0, func(p *Params) units.Bytes { return max((p.LineRate / 2500).BytesIn(p.BaseRTT), 1) })
}

func (p *Params) visit(s *param.Set, f *law.Flow, maxStage int, step func(*Params) units.Bytes) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.AtLeast(param.PacketTime(p.LineRate, p.MSS)), "T, the same for all flows of a fabric: a little more than its longest base round trip (§3.3); default the flow's own")
	param.Of(s, "eta", &p.Eta, 0.95, param.AboveTo(0, 1), "η, the utilisation sought (§3.3)")
	param.Of(s, "max_stage", &p.MaxStage, maxStage, param.AtLeast(0), "round trips of additive increase before a multiplicative one (§3.3); 0 divides by the utilisation in each, as the public simulator's configuration has it")
	param.Of(s, "flows", &p.Flows, 100, param.AtLeast(1), "N of the default increase, how many flows a link is expected to carry")
	param.Of(s, "increase", &p.Increase, step(p), param.Above(0), "W_AI; default W_init·(1 − η)/N (§3.3), 40 Mb/s times T at 100 Gb/s in the public HPCC simulator")
	least := units.Rate(0)
	if maxStage == 0 {
		least = min(units.Gbps, p.LineRate)
	}
	param.Of(s, "min_rate", &p.MinRate, least, param.From(0, p.LineRate), "floor of the rate, and with it of the window; a packet is the least window in any case")
}

func (p *Params) step() units.Bytes {
	return max(units.Bytes(float64(p.LineRate.BytesIn(p.BaseRTT))*(1-p.Eta)/float64(max(p.Flows, 1))), 1)
}
