// Package ledbat is LEDBAT (RFC 6817): a window that grows and shrinks in proportion to how
// far the queueing delay is below or above a target. The delay is one-way where the
// receiver's clock is known, else the round trip (which the RFC leaves to the sender, as
// only differences count).
//
// It is also a base for PrioPlus, which sets target, window and step (prioplus.DelayLaw).
package ledbat

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Law is LEDBAT for one flow. The flow's sender owns it.
type Law struct {
	law.Untimed
	par     Params
	base    units.Time // delay of an empty path, 0 to measure it
	target  units.Time // queueing delay sought
	current minimum    // §2.4.2, current_delays
	history minimum    // base_delays
	rolled  units.Time // when the latest interval of history began

	cwnd  float64 // bytes
	least float64 // of cwnd
	scale float64 // of the additive increase
	extra float64 // added to it below the target, bytes per round trip

	rtt     units.Time
	lossEnd units.Time // losses before this belong to one that has been answered
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow, or says which parameter is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(func(s *param.Set) { p.Visit(s, &law.Flow{}) }); err != nil {
		return nil, err
	}
	if p.MaxWindow == 0 {
		p.MaxWindow = law.Unbounded
	}
	return &Law{par: p, base: p.BaseDelay, target: p.Target, cwnd: float64(p.InitialWindow), least: float64(p.MinWindow), scale: 1}, nil
}

// OnAck implements law.Law.
func (l *Law) OnAck(a *law.Ack) {
	delay := a.Delay
	if delay == 0 {
		delay = a.RTT
	}
	l.OnDelay(a, delay)
}

// OnDelay is §2.4.2's step for an acknowledgement with a delay of the kind that the target
// is of.
func (l *Law) OnDelay(a *law.Ack, delay units.Time) {
	l.rtt = a.RTT
	l.current.add(delay, l.par.Filter)
	l.updateBase(a.Now, delay)
	if a.Acked <= 0 {
		return
	}
	base := l.base
	if base == 0 {
		base = l.history.get()
	}
	queueing := l.current.get() - base
	offTarget := float64(l.target-queueing) / float64(l.target)
	step := l.par.Gain * l.scale * offTarget * float64(l.par.MSS)
	if offTarget > 0 {
		step += l.extra
	}
	was := l.cwnd
	l.cwnd += step * float64(a.Acked) / max(l.cwnd, float64(l.par.MSS))
	// The flight before this acknowledgement bounds growth; it does not take back what the
	// window has.
	flight := float64(a.Inflight+a.Acked) + l.par.AllowedIncrease*float64(l.par.MSS)
	if l.cwnd > was {
		l.cwnd = max(was, min(l.cwnd, flight))
	}
	l.bound()
}

// updateBase is §2.4.2's update_base_delay: the least delay of each of the last intervals.
func (l *Law) updateBase(now, delay units.Time) {
	if l.base != 0 {
		return
	}
	if l.history.n == 0 || now-l.rolled >= l.par.BaseInterval {
		l.history.add(delay, l.par.BaseHistory)
		l.rolled = now
		return
	}
	l.history.lower(delay, l.par.BaseHistory)
}

func (l *Law) bound() {
	l.cwnd = min(max(l.cwnd, l.least), float64(l.par.MaxWindow))
}

// OnEvent implements law.Law: a loss halves the window, at most once per round trip
// (§2.4.1).
func (l *Law) OnEvent(e law.Event, now units.Time) {
	if e != law.Loss || now < l.lossEnd {
		return
	}
	l.lossEnd = now + l.rtt
	l.cwnd /= 2
	l.bound()
}

// Allowance implements law.Law. A window of less than a packet is paced, which the RFC's
// MIN_CWND excludes but PrioPlus does not.
func (l *Law) Allowance() law.Allowance {
	a := law.Allowance{Rate: l.par.LineRate, Window: max(units.Bytes(l.cwnd), 1)}
	if l.cwnd < float64(l.par.MSS) && l.rtt > 0 {
		a.Rate = max(units.Rate(l.cwnd*8*float64(units.Second)/float64(l.rtt)), 1)
	}
	return a
}

// SetTarget makes target, a delay of the kind that OnDelay is given, what the law holds;
// base is that delay on an empty path, below target. Whoever steers the law bounds its window
// from below: a crowd shares a channel of PrioPlus by windows of less than a packet, which
// MIN_CWND would keep at two, so it does not apply from here on.
func (l *Law) SetTarget(base, target units.Time) {
	l.base, l.target, l.least = base, target-base, 1
}

// SetIncrease scales the gain and adds extra bytes per round trip to the step below the
// target.
func (l *Law) SetIncrease(scale, extra float64) { l.scale, l.extra = scale, extra }

// Window returns the window in bytes.
func (l *Law) Window() float64 { return l.cwnd }

// SetWindow sets the window in bytes, within the configured bounds.
func (l *Law) SetWindow(w float64) {
	l.cwnd = w
	l.bound()
}
