// Package powertcp is PowerTCP (Addanki, Michel, Schmid, "PowerTCP: Pushing the Performance Limits of
// Datacenter Networks", NSDI 2022). The power of the busiest link sets the window: the product of its current
// (bytes that arrive per second) and its voltage (bytes in the pipe and the queue), normalised by the power of
// a full link without a queue. Algorithm 1 takes it from in-band telemetry; Algorithm 2, θ-PowerTCP, from round
// trips.
package powertcp

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// minPower is the least power that the window is divided by. Without it, one sample of a queue that drains fast
// would open the window wide. The authors' simulator bounds θ-PowerTCP's power in the same way.
const minPower = 0.5

// Law is PowerTCP for one flow. The flow's sender owns it.
type Law struct {
	law.Untimed
	par  Params
	tau  float64 // τ, picoseconds
	most float64 // the window at line rate, bytes

	w, old float64 // cwnd and cwnd_old, the window of the last round trip, bytes
	power  float64 // Γ_smooth
	round  law.Round

	path    law.Path   // prevInt
	prevRTT units.Time // prevRTT of θ-PowerTCP
	prevAt  units.Time
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	l := &Law{par: p, tau: float64(p.BaseRTT), most: float64(p.LineRate.BytesIn(p.BaseRTT)), power: 1}
	l.w, l.old = l.most, l.most // §3.3: cwnd_init = HostBw·τ
	return l, nil
}

// OnAck implements law.Law: NewAck of Algorithm 1 (lines 1 to 8) and of Algorithm 2.
func (l *Law) OnAck(a *law.Ack) {
	if l.par.Theta {
		l.onAckTheta(a)
		return
	}
	hops, ok := l.path.Follows(a, &l.round)
	if !ok || !l.normPower(hops) {
		return
	}
	l.path.Keep(hops)
	l.updateWindow()
	if l.round.Passed(a) {
		l.old = l.w // updateOld, once per round trip
	}
}

// normPower is the paper's function of that name, lines 9 to 25. It returns false if no link's clock has moved.
// Powers are normalised as they are computed, so numbers stay small.
func (l *Law) normPower(hops []law.Hop) bool {
	power, span := 0.0, 0.0
	for i := range hops {
		queue := hops[i].Queue
		c := l.path.Change(i, &hops[i])
		if c.Span == 0 {
			continue
		}
		gradient := float64(queue-l.path.Queue(i)) * c.PerByte / c.Span // line 12, over the rate
		current := gradient + c.Sent                                    // lines 13 and 14
		voltage := float64(queue)*c.PerByte/l.tau + 1                   // line 16, over the product b·τ
		if v := current * voltage; v > power || span == 0 {             // lines 17 to 22
			power, span = v, c.Span
		}
	}
	if span == 0 {
		return false
	}
	l.smooth(power, span)
	return true
}

// smooth is line 24: a sample's weight is its time divided by τ, at most 1.
func (l *Law) smooth(power, span float64) {
	part := min(span/l.tau, 1)
	l.power = l.power*(1-part) + max(power, 0)*part
}

// updateWindow is lines 26 to 28. The window is at most line rate times τ.
func (l *Law) updateWindow() {
	w := l.par.Gamma*(l.old/max(l.power, minPower)+float64(l.par.Increase)) + (1-l.par.Gamma)*l.w
	l.w = min(max(w, float64(l.par.MSS)), l.most)
}

// onAckTheta is Algorithm 2. The round trip is the voltage, and one plus its gradient is the current. The
// window changes once per round trip.
func (l *Law) onAckTheta(a *law.Ack) {
	if l.prevAt == 0 {
		l.prevRTT, l.prevAt = a.RTT, a.Now
		l.round.Begin(a.SentSeq)
		return
	}
	dt := float64(a.Now - l.prevAt)
	if dt <= 0 {
		return
	}
	gradient := float64(a.RTT-l.prevRTT) / dt
	l.smooth((gradient+1)*float64(a.RTT)/l.tau, dt)
	l.prevRTT, l.prevAt = a.RTT, a.Now
	if l.round.Passed(a) {
		l.updateWindow()
		l.old = l.w
	}
}

// OnEvent implements law.Law. PowerTCP answers power alone; go-back-N sends again.
func (l *Law) OnEvent(law.Event, units.Time) {}

// Allowance implements law.Law: line 6, rate = cwnd/τ.
func (l *Law) Allowance() law.Allowance {
	return law.Allowance{Rate: law.Pace(l.w, l.tau), Window: units.Bytes(l.w)}
}

// Params are the parameters of the law; Visit describes each.
type Params struct {
	LineRate units.Rate
	BaseRTT  units.Time
	MSS      units.Bytes
	Gamma    float64
	Flows    int
	Increase units.Bytes
	// Theta selects θ-PowerTCP (§3.5): no telemetry, the power from the round trip and its
	// gradient, one update per round trip.
	Theta bool
}

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.AtLeast(param.PacketTime(p.LineRate, p.MSS)), "τ, the longest base round trip (§3.3); default the flow's own")
	param.Of(s, "gamma", &p.Gamma, 0.9, param.AboveTo(0, 1), "γ of the window's moving average (§3.3)")
	param.Of(s, "flows", &p.Flows, 100, param.AtLeast(1), "N of the default increase, how many flows a host is expected to send at a time")
	param.Of(s, "increase", &p.Increase, max(p.LineRate.BytesIn(p.BaseRTT)/units.Bytes(max(p.Flows, 1)), 1), param.Above(0), "β, added to the window once per update; default line rate · τ / N (§3.3)")
}

// VisitTheta visits the parameters of θ-PowerTCP.
func (p *Params) VisitTheta(s *param.Set, f *law.Flow) {
	p.Visit(s, f)
	p.Theta = true
}
