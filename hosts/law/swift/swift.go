// Package swift is Swift (Kumar et al., "Swift: Delay is Simple and Effective for
// Congestion Control in the Datacenter", SIGCOMM 2020, Algorithm 1). While the delay is below a
// target, the window grows by a step per round trip. Otherwise it shrinks, once per round trip,
// in proportion to the excess. The target may scale with the path's length and with the window.
//
// Swift separates the fabric's delay from the end host's and keeps a window for each; this is the window for
// the fabric. It is also a base for PrioPlus, which sets target, window and step (prioplus.DelayLaw).
package swift

import (
	"math"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Law is Swift for one flow. The flow's sender owns it.
type Law struct {
	law.DelayWindow
	par    Params
	target units.Time // without flow-based scaling
	gain   float64    // α of flow-based scaling, picoseconds times √packet; 0 is off
	shift  float64    // β of flow-based scaling, picoseconds

	lowered bool       // there was a decrease
	lastAt  units.Time // time of the last decrease
	losses  int        // consecutive losses without progress
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	l := &Law{
		DelayWindow: law.NewDelayWindow(p.LineRate, p.MSS, float64(p.InitialWindow), p.MinWindow, p.MaxWindow),
		par:         p, target: p.Target + units.Time(p.Hops)*p.PerHop,
	}
	l.RTT = p.BaseRTT
	if p.ScalingRange > 0 { // §3.5: α and β such that the range is spanned
		l.gain = float64(p.ScalingRange) / (1/math.Sqrt(p.ScalingMin) - 1/math.Sqrt(p.ScalingMax))
		l.shift = -l.gain / math.Sqrt(p.ScalingMax)
	}
	return l, nil
}

// OnAck implements law.Law: the delay is the round trip.
func (l *Law) OnAck(a *law.Ack) { l.OnDelay(a, a.RTT) }

// OnDelay is Algorithm 1's step for an acknowledgement. delay and target are of the same kind, round trip or
// one-way.
func (l *Law) OnDelay(a *law.Ack, delay units.Time) {
	l.RTT = a.RTT
	if a.Acked <= 0 {
		return
	}
	l.losses = 0 // line 5
	target := l.TargetDelay()
	switch {
	case delay < target: // lines 7 to 11: below one packet the step is per packet
		if !l.limited(a) {
			l.Move(float64(l.par.Increase)*l.Scale+l.Extra, a.Acked)
		}
	case l.canDecrease(a.Now): // lines 13 and 14
		factor := l.par.Beta * float64(delay-target) / float64(delay)
		l.decrease(a.Now, min(factor, l.par.MaxMDF))
	}
	l.Bound()
}

// TargetDelay returns the present target, flow-based scaling included: target + max(0,
// min(α/√cwnd + β, fs_range)), the window in packets (§3.5).
func (l *Law) TargetDelay() units.Time {
	if l.gain == 0 {
		return l.target
	}
	more := l.gain/math.Sqrt(l.Bytes/float64(l.par.MSS)) + l.shift
	return l.target + units.Time(min(max(more, 0), float64(l.par.ScalingRange)))
}

// canDecrease is line 3: one decrease per round trip, because its effect shows only then.
func (l *Law) canDecrease(now units.Time) bool { return !l.lowered || now-l.lastAt >= l.RTT }

func (l *Law) decrease(now units.Time, factor float64) {
	l.Bytes *= 1 - factor
	l.lowered, l.lastAt = true, now
}

// limited reports whether the flow leaves most of its window unused. Its acknowledgements then do not show
// whether the window may grow (RFC 7661 §4.1).
func (l *Law) limited(a *law.Ack) bool {
	return float64(a.Inflight+a.Acked+l.par.MSS) < l.Bytes/2
}

// OnEvent implements law.Law: lines 15 to 25. A loss is answered as a fast recovery. RetxReset losses in a row
// without progress are answered as the timeouts that reset the window.
func (l *Law) OnEvent(e law.Event, now units.Time) {
	if e != law.Loss {
		return
	}
	l.losses++
	switch {
	case l.losses >= l.par.RetxReset:
		l.Bytes = l.par.MinWindow
	case l.canDecrease(now):
		l.decrease(now, l.par.MaxMDF)
	}
	l.Bound()
}

// SetTarget sets the target, and with it the kind of delay that OnDelay is given; base is
// that delay on an empty path, which Swift does not need.
func (l *Law) SetTarget(_, target units.Time) { l.target = target }

// Params are the parameters of the law; Visit describes each.
type Params struct {
	LineRate                 units.Rate
	BaseRTT                  units.Time
	MSS                      units.Bytes
	Target                   units.Time
	Hops                     int
	PerHop                   units.Time
	ScalingRange             units.Time
	ScalingMin, ScalingMax   float64
	Increase                 units.Bytes
	Beta, MaxMDF             float64
	MinWindow                float64
	InitialWindow, MaxWindow units.Bytes
	RetxReset                int
}

// Defaults that the planning of PrioPlus' channels uses too: they determine how much a Swift flow makes a
// queue's delay swing.
const (
	DefaultBeta   = 0.8
	DefaultMaxMDF = 0.5
)

// DefaultIncrease is the additive increase per round trip for a bandwidth-delay product: a
// thousandth of it, which PrioPlus' §6 recommends (0.75 KB is "approximately five times the
// recommended value" there, with 150 KB).
func DefaultIncrease(bdp units.Bytes) units.Bytes { return max(bdp/1000, 1) }

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.Above(0), "round trip of an empty path; default the flow's own")
	bdp := p.LineRate.BytesIn(p.BaseRTT)
	var above units.Time
	param.Of(s, "target_above", &above, f.Stretch(25*units.Microsecond), param.AtLeast(0), "distance of the target from base_rtt if target is not given")
	param.Of(s, "target", &p.Target, p.BaseRTT+above, param.Above(p.BaseRTT), "base target delay (§3.2), a round trip; default base_rtt + target_above")
	param.Of(s, "hops", &p.Hops, f.Hops, param.AtLeast(0), "links on the path, for topology-based scaling of the target (§3.5); default the flow's")
	param.Of(s, "per_hop", &p.PerHop, 0, param.AtLeast(0), "ħ, growth of the target per hop")
	param.Of(s, "scaling_range", &p.ScalingRange, 0, param.AtLeast(0), "fs_range of flow-based scaling (§3.5): what is added to the target of a flow whose window is scaling_min or less; 0s turns it off, the paper has some four times the base target")
	param.Of(s, "scaling_min", &p.ScalingMin, 0.1, param.Above(0.0), "fs_min_cwnd in packets")
	param.Of(s, "scaling_max", &p.ScalingMax, 100, param.Above(p.ScalingMin), "fs_max_cwnd in packets")
	param.Of(s, "increase", &p.Increase, DefaultIncrease(bdp), param.Above(0), "ai, growth of the window per round trip below the target; default bandwidth-delay product / 1000")
	param.Of(s, "beta", &p.Beta, DefaultBeta, param.AboveTo(0, 1), "β of the decrease")
	param.Of(s, "max_mdf", &p.MaxMDF, DefaultMaxMDF, param.Between(0, 1), "largest part of the window that one decrease takes")
	param.Of(s, "min_window", &p.MinWindow, max(float64(p.MSS)/100, 1), param.AtLeast(1), "least window in bytes; default a hundredth of a packet")
	param.Of(s, "max_window", &p.MaxWindow, 0, param.AtLeast(0), "bound of the window; 0B for none")
	param.Of(s, "initial_window", &p.InitialWindow, p.start(bdp), param.Above(0), "window of a flow that starts; default one bandwidth-delay product, at least a packet and at most max_window")
	param.Of(s, "retx_reset", &p.RetxReset, 5, param.AtLeast(1), "losses in a row without progress that reset the window to its least (RETX_RESET_THRESHOLD)")
	switch {
	case s.Has("target") && s.Has("target_above"):
		s.Fault("target_above", above, "want it or target, not both")
	case p.MaxWindow > 0 && float64(p.MaxWindow) < p.MinWindow:
		s.Fault("max_window", p.MaxWindow, "want at least min_window, %v B, or 0B for no bound", p.MinWindow)
	case p.MaxWindow > 0 && p.InitialWindow > p.MaxWindow:
		s.Fault("initial_window", p.InitialWindow, "want at most max_window, %v", p.MaxWindow)
	}
}

func (p *Params) start(bdp units.Bytes) units.Bytes {
	w := max(bdp, p.MSS)
	if p.MaxWindow > 0 {
		w = min(w, p.MaxWindow)
	}
	return w
}
