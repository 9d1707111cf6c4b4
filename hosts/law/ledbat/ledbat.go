// Package ledbat is LEDBAT (RFC 6817): a window that grows and shrinks in proportion to how
// far the queueing delay is below or above a target. The delay is one-way if the receiver's
// clock is known, otherwise the round trip. The RFC leaves this to the sender, because only
// differences count.
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

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
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

// OnDelay is §2.4.2's step for an acknowledgement. delay and target are of the same kind, one-way or round
// trip.
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
	// The flight before this acknowledgement bounds growth, but never shrinks the window.
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

// SetTarget sets the delay that the law holds, of the kind that OnDelay gets; base is that delay on an empty
// path, below target. The caller then bounds the window from below, and MIN_CWND no longer applies: many flows
// share a channel of PrioPlus with windows of less than a packet, where MIN_CWND would keep each at two
// packets.
func (l *Law) SetTarget(base, target units.Time) {
	l.base, l.target, l.Least = base, target-base, 1
}

// Params are the parameters of the law; Visit describes each.
type Params struct {
	LineRate                            units.Rate
	MSS                                 units.Bytes
	Target                              units.Time
	Gain                                float64
	Filter                              int
	BaseDelay                           units.Time
	BaseHistory                         int
	BaseInterval                        units.Time
	AllowedIncrease                     float64
	MinWindow, InitialWindow, MaxWindow units.Bytes
}

// maxTarget is the most that RFC 6817 allows, for the Internet.
const maxTarget = 100 * units.Millisecond

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	base := f.BaseRTT
	if f.OneWay > 0 { // both hosts have the same clock, so the base is measured
		base = 0
	}
	param.Of(s, "target", &p.Target, min(f.Stretch(25*units.Microsecond), maxTarget), param.AboveTo(0, maxTarget), "TARGET, the queueing delay sought")
	param.Of(s, "gain", &p.Gain, 1, param.AboveTo(0, 100), "GAIN, the packets that the window grows by in a round trip on an empty path; at most 1 by the RFC")
	param.Of(s, "filter", &p.Filter, 4, param.From(1, maxKept), "CURRENT_FILTER, of how many delays the least counts")
	param.Of(s, "base_delay", &p.BaseDelay, base, param.AtLeast(0), "delay of an empty path; 0s takes the least of base_history intervals; default the base round trip where one-way delays are unknown")
	param.Of(s, "base_history", &p.BaseHistory, 10, param.From(1, maxKept), "BASE_HISTORY, intervals of which the least delay counts")
	param.Of(s, "base_interval", &p.BaseInterval, 60*units.Second, param.Above(0), "length of an interval, a minute in the RFC")
	param.Of(s, "allowed_increase", &p.AllowedIncrease, 1, param.AtLeast(0), "ALLOWED_INCREASE, how many packets the window may grow beyond what is in flight")
	param.Of(s, "min_window", &p.MinWindow, 2*p.MSS, param.Above(0), "MIN_CWND, may be less than a packet; default two packets; PrioPlus, which steers the law, has none")
	param.Of(s, "initial_window", &p.InitialWindow, max(2*p.MSS, p.MinWindow), param.AtLeast(p.MinWindow), "INIT_CWND; default two packets")
	param.Of(s, "max_window", &p.MaxWindow, 0, param.AtLeast(0), "bound of the window; 0B for none")
	if p.MaxWindow > 0 && p.MaxWindow < p.InitialWindow {
		s.Fault("max_window", p.MaxWindow, "want at least initial_window, %v, or 0B for no bound", p.InitialWindow)
	}
}

// maxKept bounds the delays and intervals that are kept.
const maxKept = 16

// minimum is the least of the last few values, at most maxKept.
type minimum struct {
	kept [maxKept]units.Time
	n    int // values kept
	next int // index of the next sample
}

// add keeps v as the latest of at most size values.
func (m *minimum) add(v units.Time, size int) {
	m.kept[m.next] = v
	m.next = (m.next + 1) % size
	m.n = min(m.n+1, size)
}

// lower makes the latest value no larger than v; there must be one.
func (m *minimum) lower(v units.Time, size int) {
	last := (m.next + size - 1) % size
	m.kept[last] = min(m.kept[last], v)
}

func (m *minimum) get() units.Time {
	least := m.kept[0]
	for _, v := range m.kept[1:m.n] {
		least = min(least, v)
	}
	return least
}
