package soze

import (
	"math"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

const (
	// paceGain is how much faster than its rate a flow may be paced. The window decides
	// the rate; pacing only keeps a window that has grown from leaving as a burst, and must
	// not be what limits, or the law would integrate like a pure rate law.
	paceGain = 1.25
	// maxLoopGain bounds m times the gain of the queue's response, see the package's
	// documentation: 1/e is critically damped, π/2 the limit of stability.
	maxLoopGain = 1.0
	// maxSlower bounds how far a flow of less than a packet per round trip slows down in a
	// queue beyond p + k: its next packet, which tells whether the queue is still there, must
	// not be too far off.
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

	maxGain float64 // maxLoopGain, but for tests that show why

	lnX   float64 // ln of the rate per weight, bits per second
	lnMax float64 // ln of MaxRate per weight
	rest  float64 // round trip without the echoed delay, picoseconds, over about one round trip
	rtt   units.Time
	// slower is how much slower than at its rate a window leaves, 1 up to a queue of p + k:
	// the share of the longest round trip that the law knows in the present one.
	slower float64

	joined   bool       // the first window has been acknowledged
	firstD   float64    // longest delay echoed before that, picoseconds
	firstSeq uint64     // bytes that had arrived by the first acknowledgement,
	firstOut units.Time // and when that had left

	full float64 // the longest delay that maxQD can say, picoseconds

	losses law.LossGate
	allow  law.Allowance
}

var _ law.Weighted = (*Law)(nil)

// New returns the law of a flow with a weight, or says which parameter is wrong and what
// is allowed.
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
	if d >= l.full { // the queue is longer than the echo says, so the difference is no propagation
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

// join takes the echoes of the first window. The longest delay among them says which rate
// per weight the flows on the bottleneck have: start there, and all move together to
// where the sum of rates fits. Taking the whole window lets flows that start at the same
// time on an empty path see each other before any of them believes that it is alone. Where
// they meet at the NIC of their host nothing stamps; how fast the NIC, in turn with others, let
// the window go tells of them, and no flow joins above that.
func (l *Law) join(a *law.Ack, d, rest float64) {
	l.firstD = max(l.firstD, d)
	out := a.Now - a.RTT
	if l.firstSeq == 0 {
		l.firstSeq, l.firstOut = a.AckedSeq, out
	}
	if a.AckedSeq < uint64(l.par.InitialWindow) {
		if a.AckedSeq >= a.SentSeq { // the application pauses, which the NIC's turns must not be taken for
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

// OnEvent implements law.Law. A loss tells of a queue that could not be stamped because it
// was full: it counts as one round trip of echoes of p + k, once per round trip.
func (l *Law) OnEvent(e law.Event, now units.Time) {
	if !l.joined || !l.losses.Answers(e, now, l.rtt) {
		return
	}
	l.lnX += l.exponent() * min(l.target.lnBeta-l.lnX, 0)
	l.apply()
}

// Crowded reports whether the last echo was beyond p + k. Where it stays so, beta is above
// the bottleneck's fair share: the queue is longer than the configuration wants it.
func (l *Law) Crowded() bool { return l.slower < 1 }

// Allowance implements law.Law.
func (l *Law) Allowance() law.Allowance { return l.allow }

// SetWeight implements law.Weighted. The rate per weight stays, so the rate changes in
// proportion at once.
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

// limited reports whether the flow leaves most of its allowance unused, because it has nothing to send
// or another flow of its host uses the NIC. What it sees then does not show whether it may have more.
func (l *Law) limited(a *law.Ack) bool {
	byRate := float64(l.allow.Rate) * float64(a.RTT) * picobits
	full := min(float64(l.allow.Window), byRate)
	return float64(a.Inflight+a.Acked+l.par.MSS) < full/2
}

// exponent returns m, lowered where the queue would answer it with more than maxLoopGain in
// the time between two steps: a round trip, or the gap between two packets where that is
// longer.
func (l *Law) exponent() float64 { return min(l.par.M, l.maxGain/l.gain()) }

// gain returns G, the time between two steps in units of the queue's response.
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
		// The least window stays in flight, spaced so that the rate is the window's.
		window, pace = least, rate*l.slower
	}
	l.allow.Rate = max(units.Rate(min(pace, float64(l.par.MaxRate))), 1)
	l.allow.Window = units.Bytes(min(window, 1<<62))
}
