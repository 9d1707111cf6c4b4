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
	law.DelayWindow
	par     Params
	base    units.Time // delay of an empty path, 0 to measure it
	target  units.Time // queueing delay sought
	current minimum    // §2.4.2, current_delays
	history minimum    // base_delays
	rolled  units.Time // when the latest interval of history began
	losses  law.LossGate
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow, or says which parameter is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	return &Law{
		DelayWindow: law.NewDelayWindow(p.LineRate, p.MSS, float64(p.InitialWindow), float64(p.MinWindow), p.MaxWindow),
		par:         p, base: p.BaseDelay, target: p.Target,
	}, nil
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
	l.RTT = a.RTT
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
	step := l.par.Gain * l.Scale * offTarget * float64(l.par.MSS)
	if offTarget > 0 {
		step += l.Extra
	}
	was := l.Bytes
	l.Move(step, a.Acked)
	// The flight before this acknowledgement bounds growth; it does not take back what the
	// window has.
	flight := float64(a.Inflight+a.Acked) + l.par.AllowedIncrease*float64(l.par.MSS)
	if l.Bytes > was {
		l.Bytes = max(was, min(l.Bytes, flight))
	}
	l.Bound()
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

// OnEvent implements law.Law: a loss halves the window, at most once per round trip
// (§2.4.1).
func (l *Law) OnEvent(e law.Event, now units.Time) {
	if l.losses.Answers(e, now, l.RTT) {
		l.Bytes /= 2
		l.Bound()
	}
}

// SetTarget makes target, a delay of the kind that OnDelay is given, what the law holds;
// base is that delay on an empty path, below target. Whoever steers the law bounds its window
// from below: a crowd shares a channel of PrioPlus by windows of less than a packet, which
// MIN_CWND would keep at two, so it does not apply from here on.
func (l *Law) SetTarget(base, target units.Time) {
	l.base, l.target, l.Least = base, target-base, 1
}
