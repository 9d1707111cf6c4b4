package prioplus

import (
	"fmt"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Parts of a packet, see the package's documentation: the least window that the estimate of
// #flow divides by, and the window at which a flow stops and probes.
const (
	estimateFloor = 0.5
	tinyWindow    = 0.1
)

// Law is PrioPlus for one flow, Algorithm 1. The flow's sender owns it, and it owns the law
// underneath.
type Law struct {
	par   Params
	under DelayLaw
	base  units.Time // BaseRtt, or the one-way delay of an empty path

	flows     float64    // #flow: how many flows of this priority there may be, at least 1
	countDown int        // round trips at the base delay before #flow is halved
	over      int        // consec: delays in a row beyond the limit
	round     law.Round  // rttEndSeq
	roundAt   units.Time // when the round began
	dual      bool       // dualRttPass

	stopped bool
	probeAt units.Time // when the next probe is due, 0 for none
	waiting bool       // a probe has left and was not answered
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow over a delay law of its own. An error names the parameter that is wrong and
// what is allowed.
func New(under DelayLaw, p Params) (*Law, error) {
	if under == nil {
		return nil, fmt.Errorf("law underneath: want one")
	}
	if p.Rand == nil {
		return nil, fmt.Errorf("rand: want a source of random numbers")
	}
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	l := &Law{par: p, under: under, base: p.base(), flows: 1, stopped: true}
	under.SetTarget(l.base, p.Target)
	under.SetIncrease(1, 0)
	return l, nil
}

// OnAck implements law.Law: NewAck and NewProbeAck of Algorithm 1, whose lines are named.
func (l *Law) OnAck(a *law.Ack) {
	delay := l.delay(a)
	if a.Probe {
		l.onProbeAnswer(a, delay)
		return
	}
	if a.Acked <= 0 {
		return // a duplicate or a NAK: its delay is not of a packet just sent
	}
	passed, trips := l.round.Passed(a), 1 // lines 2 and 3
	if passed {
		trips = max(1, int((a.Now-l.roundAt)/max(l.roundTrip(delay), l.par.BaseRTT)))
		l.roundAt = a.Now
		l.dual = !l.dual               // line 4
		if !l.dual || l.par.EveryRTT { // lines 5 and 6: the adaptive increase is over
			l.setIncrease(0)
		}
	}
	if delay < l.par.Limit {
		l.over = 0 // line 20
	} else if l.over++; l.over >= l.par.Filter { // line 7
		l.estimate(delay)
		l.stop(a.Now, delay) // line 11
		return
	}
	if l.stopped {
		return
	}
	if passed && delay <= l.par.Target { // line 13
		l.increase(delay, trips)
	}
	l.under.OnDelay(a, delay) // line 22
	l.bound(a.Now)
}

// increase is lines 14 to 19, once per round trip at or below the target. With a window of less than a packet,
// an acknowledgement comes only every trips round trips. At the base delay each of them counts, until the
// window is a packet.
func (l *Law) increase(delay units.Time, trips int) {
	if l.equalsBase(delay) {
		for w := 0.0; trips > 0 && w < float64(l.par.MSS); trips-- {
			w = l.under.Window() + float64(l.par.LinearStart)/l.flows // linear start (§4.2.2)
			l.under.SetWindow(w)
			l.countDownFlows()
		}
		return
	}
	if l.dual || l.par.EveryRTT { // adaptive increase (§4.2.3)
		w := l.under.Window()
		l.setIncrease(min(w/2, float64(l.par.Target-delay)/float64(l.roundTrip(delay))*w))
	}
}

// estimate is lines 8 to 10: #flow is the payload in flight over the flow's own window (§4.3.1).
func (l *Law) estimate(delay units.Time) {
	if !l.par.NoCardinality {
		l.flows = max(l.flows, l.inFlight(delay)/max(l.under.Window(), estimateFloor*float64(l.par.MSS)))
		l.countDown = int((l.par.bdp() + l.par.LinearStart - 1) / l.par.LinearStart)
	}
	l.setIncrease(0)
}

// countDownFlows is lines 16 and 17, and 31 and 32: if the delay stays at the base for longer than a
// linear start of #flow flows takes, there are fewer flows.
func (l *Law) countDownFlows() {
	if l.countDown > 0 {
		l.countDown--
		return
	}
	l.flows = max(1, l.flows/2)
}

// setIncrease sets W_AI to the original over #flow, plus extra bytes.
func (l *Law) setIncrease(extra float64) { l.under.SetIncrease(1/l.flows, extra) }

// bound keeps the window within the target's bound, and stops a flow whose window is nearly 0.
func (l *Law) bound(now units.Time) {
	w := l.under.Window()
	if most := l.inFlight(l.par.Target); w > most {
		l.under.SetWindow(most)
	}
	if w <= tinyWindow*float64(l.par.MSS) {
		l.stop(now, l.base)
	}
}

// stop stops sending and schedules a probe (lines 11 and 23 to 25). A probe in flight serves as well.
func (l *Law) stop(now, delay units.Time) {
	l.stopped = true
	if !l.waiting {
		l.schedule(now, delay)
	}
}

// schedule is ScheduleProbe, with collision avoidance (§4.2.1): the queue takes at least
// delay − D_target to drain, and flows spread over a round trip beyond.
func (l *Law) schedule(now, delay units.Time) {
	wait := max(delay-l.par.Target, 0) + units.Time(l.par.Rand.Int64N(int64(l.par.BaseRTT)))
	l.waiting, l.probeAt = false, max(now+wait, 1)
}

// onProbeAnswer is NewProbeAck, lines 26 to 36.
func (l *Law) onProbeAnswer(a *law.Ack, delay units.Time) {
	l.waiting, l.probeAt = false, 0
	if !l.stopped {
		return
	}
	if delay >= l.par.Limit { // lines 27 and 28
		l.schedule(a.Now, delay)
		return
	}
	if l.equalsBase(delay) { // lines 29 to 32
		l.under.SetWindow(float64(l.par.LinearStart) / l.flows)
		l.countDownFlows()
	} else { // lines 33 and 34: one delay is weak evidence (§4.4)
		l.under.SetWindow(float64(l.par.MSS))
	}
	l.resume(a.SentSeq, a.Now)
}

// resume is lines 35 and 36. It does not reset the count of delays beyond the limit, so one more stops
// a flow that returns into another priority's channel.
func (l *Law) resume(next uint64, now units.Time) {
	l.stopped, l.dual, l.roundAt = false, false, now
	l.round.Begin(next)
	l.setIncrease(0)
}

// OnEvent implements law.Law.
func (l *Law) OnEvent(e law.Event, now units.Time) {
	switch {
	case e == law.Start && l.par.StartNow: // §4.4: high priorities start linearly at once
		l.under.OnEvent(e, now)
		l.under.SetWindow(float64(l.par.LinearStart))
		l.resume(0, now)
	case e == law.Start:
		l.under.OnEvent(e, now)
		l.schedule(now, l.base)
	case e == law.ProbeSent:
		l.waiting, l.probeAt = true, 0
	case e == law.Loss && l.stopped:
		if l.probeAt == 0 { // the probe may be lost (§4.2.1)
			l.schedule(now, l.base)
		}
	default:
		l.under.OnEvent(e, now)
	}
}

// Timer implements law.Law. It excludes the time of the probe, which the transport reads from Allowance.
func (l *Law) Timer() units.Time { return l.under.Timer() }

// Allowance implements law.Law.
func (l *Law) Allowance() law.Allowance {
	if l.stopped {
		return law.Allowance{Probe: l.probeAt}
	}
	return l.under.Allowance()
}

// SetChannel moves the flow to another channel immediately; see Params.Target and Limit.
func (l *Law) SetChannel(target, limit units.Time) error {
	if err := l.par.checkChannel(target, limit); err != nil {
		return err
	}
	l.par.Target, l.par.Limit = target, limit
	l.under.SetTarget(l.base, target)
	return nil
}

func (l *Law) delay(a *law.Ack) units.Time {
	switch {
	case l.par.OneWay == 0:
		return a.RTT
	case a.Delay == 0:
		return a.RTT - (l.par.BaseRTT - l.par.OneWay)
	}
	return a.Delay
}

func (l *Law) equalsBase(delay units.Time) bool { return delay <= l.base+l.par.Tolerance }

// roundTrip returns the round trip for a delay. With one-way delays the return path is taken to be empty.
func (l *Law) roundTrip(delay units.Time) units.Time { return delay + l.par.BaseRTT - l.base }

// inFlight returns the payload in flight on a full path with a given delay.
func (l *Law) inFlight(delay units.Time) float64 {
	return float64(l.par.LineRate.BytesIn(l.roundTrip(delay)))
}
