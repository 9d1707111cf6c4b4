// Package aimd is additive increase and multiplicative decrease on the queueing delay. Söze's evaluation (NSDI
// 2025, §5.3.1) compares with it on switches that serve weighted queues. Below a delay the window grows by a
// packet per round trip; above it the window shrinks by a fraction.
package aimd

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Law is AIMD for one flow. The flow's sender owns it.
type Law struct {
	law.Untimed
	par    Params
	cwnd   float64 // bytes
	round  law.Round
	losses law.LossGate
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	return &Law{par: p, cwnd: float64(p.InitialWindow)}, nil
}

// OnAck implements law.Law: one step per round trip, by the delay of the packet that ends it.
func (l *Law) OnAck(a *law.Ack) {
	if a.Acked <= 0 || !l.par.PerAck && !l.round.Passed(a) {
		return
	}
	if a.MaxQD > l.par.Delay {
		l.decrease()
	} else {
		l.cwnd += float64(l.par.Increase)
	}
}

func (l *Law) decrease() { l.cwnd = max(l.cwnd*(1-l.par.Decrease), float64(l.par.MSS)) }

// OnEvent implements law.Law: a loss is a decrease, once per base round trip.
func (l *Law) OnEvent(e law.Event, now units.Time) {
	if l.losses.Answers(e, now, l.par.BaseRTT) {
		l.decrease()
	}
}

// Allowance implements law.Law.
func (l *Law) Allowance() law.Allowance {
	return law.Allowance{Rate: l.par.LineRate, Window: units.Bytes(l.cwnd)}
}

// Params are the parameters of the law; Visit describes each.
type Params struct {
	LineRate                units.Rate
	BaseRTT                 units.Time
	MSS                     units.Bytes
	Delay                   units.Time
	Increase, InitialWindow units.Bytes
	Decrease                float64
	PerAck                  bool
}

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.AtLeast(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "delay", &p.Delay, f.Stretch(20*units.Microsecond), param.Above(0), "queueing delay beyond which the window shrinks; default Söze's 20us (§5.3.1)")
	param.Of(s, "increase", &p.Increase, p.MSS, param.Above(0), "growth of the window per round trip; default one packet")
	param.Of(s, "decrease", &p.Decrease, 0.125, param.Between(0, 1), "part of the window that a decrease takes; Söze's text has lost it")
	param.Bool(s, "per_ack", &p.PerAck, false, "step with each acknowledgement in place of once per round trip")
	param.Of(s, "initial_window", &p.InitialWindow, 10*p.MSS, param.AtLeast(p.MSS), "window of a flow that starts; default ten packets (RFC 6928)")
}
