// Package dctcp is DCTCP (Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, and
// RFC 8257) and, for flows with a deadline, D2TCP (Vamanan et al., "Deadline-Aware
// Datacenter TCP (D2TCP)", SIGCOMM 2012). The window is cut once per round trip in
// proportion to the share of marked packets; D2TCP raises that share to the power of the
// flow's urgency, so that far deadlines give way to near ones.
package dctcp

import (
	"math"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Law is DCTCP or D2TCP for one flow. The flow's sender owns it.
type Law struct {
	law.Untimed
	par    Params
	cwnd   float64 // bytes
	alpha  float64
	slow   bool      // the flow is in slow start
	round  law.Round // the round over which alpha is measured
	acked  units.Bytes
	marked units.Bytes
	cutEnd uint64 // data beyond it was sent after the last cut
	cut    bool   // there was one
	start  units.Time
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
func New(p Params) (*Law, error) {
	visit := p.Visit
	if p.Deadline != 0 {
		visit = p.VisitD2TCP
	}
	if err := param.Check(visit); err != nil {
		return nil, err
	}
	if p.MaxWindow == 0 {
		p.MaxWindow = law.Unbounded
	}
	// RFC 8257 §4.2: alpha starts at 1, so that the first mark halves the window.
	return &Law{par: p, cwnd: float64(p.InitialWindow), alpha: 1, slow: true}, nil
}

// OnAck implements law.Law.
func (l *Law) OnAck(a *law.Ack) {
	l.acked += a.Acked
	if a.CE {
		l.marked += a.Acked
	}
	if l.round.Passed(a) && l.acked > 0 {
		// §3.1, Equation 1, over the last window of data.
		share := float64(l.marked) / float64(l.acked)
		l.alpha = (1-l.par.Gain)*l.alpha + l.par.Gain*share
		l.acked, l.marked = 0, 0
	}
	switch {
	case a.CE:
		l.reduce(a)
	case a.Acked <= 0 || l.limited(a):
	case l.slow:
		l.cwnd += float64(a.Acked)
	default:
		l.cwnd += float64(l.par.Increase) * float64(a.Acked) / l.cwnd
	}
	l.cwnd = min(l.cwnd, float64(l.par.MaxWindow))
}

// reduce is §3.1, Equation 2, at most once per window of data (RFC 8257 §3.3), with D2TCP's
// p = α^d in alpha's place (D2TCP §3.2.1).
func (l *Law) reduce(a *law.Ack) {
	l.slow = false
	if l.cut && a.AckedSeq <= l.cutEnd {
		return
	}
	l.cut, l.cutEnd = true, a.SentSeq
	p := l.alpha
	if l.par.Deadline > 0 {
		p = math.Pow(l.alpha, l.Urgency(a))
	}
	l.cwnd = max(l.cwnd*(1-p/2), float64(l.par.MSS))
}

// Urgency returns D2TCP's d (§3.2.2): the time that the rest of the flow needs, divided by the time until its
// deadline. It assumes a window that swings between half and all of its size. After the deadline d is
// MaxUrgency.
func (l *Law) Urgency(a *law.Ack) float64 {
	left := l.start + l.par.Deadline - a.Now
	if left <= 0 {
		return l.par.MaxUrgency
	}
	rest := float64(l.par.Size) - float64(a.AckedSeq)
	need := rest / (0.75 * l.cwnd) * float64(a.RTT)
	return min(max(need/float64(left), l.par.MinUrgency), l.par.MaxUrgency)
}

// limited reports whether the flow leaves most of its window unused. Its acknowledgements then do not show
// whether the window may grow (RFC 7661 §4.1).
func (l *Law) limited(a *law.Ack) bool {
	return float64(a.Inflight+a.Acked) < l.cwnd/2
}

// OnEvent implements law.Law. A loss halves the window (RFC 8257 §3.5).
func (l *Law) OnEvent(e law.Event, now units.Time) {
	switch e {
	case law.Start:
		l.start = now
	case law.Loss:
		l.slow = false
		l.cwnd = max(l.cwnd/2, float64(l.par.MSS))
	}
}

// Allowance implements law.Law. The window is not paced: acknowledgements clock it.
func (l *Law) Allowance() law.Allowance {
	return law.Allowance{Rate: l.par.LineRate, Window: units.Bytes(l.cwnd)}
}

// Params are the parameters of the law; Visit describes each.
type Params struct {
	LineRate                           units.Rate
	MSS                                units.Bytes
	Gain                               float64
	Increase, InitialWindow, MaxWindow units.Bytes

	Deadline               units.Time // above 0 makes the law D2TCP
	Size                   units.Bytes
	MinUrgency, MaxUrgency float64
}

// Visit visits the parameters of DCTCP.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "gain", &p.Gain, 1.0/16, param.AboveTo(0, 1), "g of alpha's moving average (DCTCP §3.1, RFC 8257 §4.2)")
	param.Of(s, "increase", &p.Increase, p.MSS, param.Above(0), "growth of the window per round trip without marks; default one packet")
	param.Of(s, "initial_window", &p.InitialWindow, 10*p.MSS, param.AtLeast(p.MSS), "window of a flow that starts, which doubles per round trip until the first mark or loss; default ten packets (RFC 6928)")
	param.Of(s, "max_window", &p.MaxWindow, 0, param.AtLeast(0), "bound of the window; 0B for none")
	if p.MaxWindow > 0 && p.MaxWindow < p.InitialWindow {
		s.Fault("max_window", p.MaxWindow, "want at least initial_window, %v, or 0B for no bound", p.InitialWindow)
	}
}

// VisitD2TCP visits the parameters of a flow with a deadline.
func (p *Params) VisitD2TCP(s *param.Set, f *law.Flow) {
	p.Visit(s, f)
	param.Of(s, "deadline", &p.Deadline, f.Deadline, param.Above(0), "time from its start within which the flow should complete; default the flow's own deadline")
	param.Path(s, "size", &p.Size, f.Size, param.Above(0))
	param.Of(s, "min_urgency", &p.MinUrgency, 0.5, param.AboveTo(0, 1), "least d (D2TCP §3.2.3)")
	param.Of(s, "max_urgency", &p.MaxUrgency, 2, param.From(1, 100), "largest d (D2TCP §3.2.3)")
}
