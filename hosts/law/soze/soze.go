package soze

import (
	"math"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

const (
	// paceGain is the pacing rate divided by the flow's rate. The window must be the limit; pacing only keeps a
	// grown window from leaving as a burst. If pacing were the limit, the law would integrate like a pure rate
	// law.
	paceGain = 1.25
	// maxLoopGain bounds m times the gain of the queue's response, see the package's
	// documentation: 1/e is critically damped, π/2 the limit of stability.
	maxLoopGain = 1.0
	// maxSlower is the least factor by which pacing slows a flow of less than a packet per round trip in a
	// queue beyond p + k. Its next packet shows whether the queue is still there, so it must come soon.
	maxSlower = 0.25
	// picobits converts bits per second times picoseconds to bytes.
	picobits = 1.0 / (8 * float64(units.Second))
)

// Law is Söze for one flow; see the package's documentation. The flow's sender owns it.
type Law struct {
	law.Untimed
	par    Params
	target Target
	weight float64

	maxGain float64 // maxLoopGain, except in tests that show why it is needed

	lnX   float64 // ln of the rate per weight, bits per second
	lnMax float64 // ln of MaxRate per weight
	rest  float64 // round trip without the echoed delay, smoothed over about one round trip, picoseconds
	rtt   units.Time
	// slower is the factor by which pacing slows a flow with the least window. It is 1 up to a queue of p + k.
	// Beyond, it is the round trip with a queue of p + k divided by the present one.
	slower float64

	joined   bool       // the first window has been acknowledged
	firstD   float64    // longest delay echoed before that, picoseconds
	firstSeq uint64     // first byte not acknowledged by the first acknowledgement
	firstOut units.Time // when the packet that the first acknowledgement acknowledged was sent

	full float64 // the longest delay that maxQD can express, picoseconds

	losses law.LossGate
	allow  law.Allowance
}

var _ law.Weighted = (*Law)(nil)

// New returns the law of a flow with a weight. An error names the parameter that is wrong and what is allowed.
func New(p Params, weight float64) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	if err := CheckWeight(weight); err != nil {
		return nil, err
	}
	l := &Law{par: p, target: NewTarget(p), weight: weight, maxGain: maxLoopGain, full: float64(LongestQD(p.P + p.K))}
	l.lnMax = math.Log(float64(p.MaxRate) / weight)
	l.lnX, l.slower = l.lnMax, 1
	l.allow = law.Allowance{Rate: p.MaxRate, Window: p.InitialWindow}
	return l, nil
}

// OnAck implements law.Law: Equation 7's update, a window's worth of acknowledgements
// applying the exponent m together.
func (l *Law) OnAck(a *law.Ack) {
	d := float64(a.MaxQD)
	rest := max(float64(a.RTT)-d, 1)
	if d >= l.full { // the echo is saturated, so the difference is not the propagation delay
		rest = max(l.rest, 1)
	}
	l.rtt = a.RTT
	if !l.joined {
		l.join(a, d, rest)
		return
	}
	if a.Acked <= 0 {
		return
	}
	part := min(float64(a.Acked)/float64(l.allow.Window), 1)
	l.rest += (rest - l.rest) * part
	lnX := l.target.stepLn(l.lnX, d, l.exponent()*part)
	if lnX > l.lnX && l.limited(a) {
		return
	}
	l.lnX = lnX
	l.slower = min(max((l.rest+l.target.p+l.target.k)/(l.rest+d), maxSlower), 1)
	l.apply()
}

// join uses the echoes of the first window. The longest delay among them shows the rate per weight of the flows
// at the bottleneck. The flow starts at that rate, and all flows then move together to where the sum of rates
// fits. With a whole window, flows that start together on an empty path see each other before any takes the
// path for its own. No switch stamps the queue in their host's NIC, so the rate at which the NIC sent the
// window is an upper bound.
func (l *Law) join(a *law.Ack, d, rest float64) {
	l.firstD = max(l.firstD, d)
	out := a.Now - a.RTT
	if l.firstSeq == 0 {
		l.firstSeq, l.firstOut = a.AckedSeq, out
	}
	if idle := a.AckedSeq >= a.SentSeq; a.AckedSeq < uint64(l.par.InitialWindow) && (l.par.WholeWindow || !idle) {
		if idle { // the application paused, so the gap does not show the NIC's rate
			l.firstSeq = 0
		}
		return
	}
	l.joined = true
	l.rest, l.lnX = rest, l.target.lnShare(l.firstD)
	if n, span := float64(a.AckedSeq-l.firstSeq), float64(out-l.firstOut); n > 0 && span > 0 {
		l.lnX = min(l.lnX, max(math.Log(n/(span*picobits*l.weight)), l.target.lnBeta))
	}
	l.apply()
}

// OnEvent implements law.Law. A lost packet met a full queue and brought back no stamp. A loss counts as one
// round trip of echoes of p + k, once per round trip.
func (l *Law) OnEvent(e law.Event, now units.Time) {
	if !l.joined || !l.losses.Answers(e, now, l.rtt) {
		return
	}
	l.lnX += l.exponent() * min(l.target.lnBeta-l.lnX, 0)
	l.apply()
}

// Crowded reports whether the last echo was beyond p + k. If it stays true, beta is above the bottleneck's fair
// share, and the queue is longer than configured.
func (l *Law) Crowded() bool { return l.slower < 1 }

// Allowance implements law.Law.
func (l *Law) Allowance() law.Allowance { return l.allow }

// SetWeight implements law.Weighted. The rate per weight stays, so the rate immediately changes in proportion.
func (l *Law) SetWeight(w float64) error {
	if err := CheckWeight(w); err != nil {
		return err
	}
	l.weight = w
	l.lnMax = math.Log(float64(l.par.MaxRate) / w)
	if l.joined {
		l.apply()
	}
	return nil
}

// limited reports whether the flow leaves most of its allowance unused, because it has nothing to send or
// another flow of its host uses the NIC. The echoes then do not show whether it may send more.
func (l *Law) limited(a *law.Ack) bool {
	byRate := float64(l.allow.Rate) * float64(a.RTT) * picobits
	full := min(float64(l.allow.Window), byRate)
	return float64(a.Inflight+a.Acked+l.par.MSS) < full/2
}

// exponent returns m, lowered to keep m·G at most maxLoopGain.
func (l *Law) exponent() float64 { return min(l.par.M, l.maxGain/l.gain()) }

// gain returns G, the time between two steps in units of the queue's response. This time is a round trip, or
// the gap between two packets if that is longer.
func (l *Law) gain() float64 {
	spacing := float64(l.par.MinWindow) / (l.weight * math.Exp(l.lnX) * picobits)
	return max(l.rest+l.target.delayLn(l.lnX), spacing) * l.target.inv
}

func (l *Law) apply() {
	l.lnX = min(l.lnX, l.lnMax)
	rate := l.weight * math.Exp(l.lnX)
	window := rate * (l.rest + l.target.delayLn(l.lnX)) * picobits
	pace := rate * paceGain
	if least := float64(l.par.MinWindow); window < least {
		// The least window stays in flight, and pacing keeps the rate of the smaller window.
		window, pace = least, rate*l.slower
	}
	l.allow.Rate = max(units.Rate(min(pace, float64(l.par.MaxRate))), 1)
	l.allow.Window = units.Bytes(min(window, 1<<62))
}
