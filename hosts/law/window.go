package law

import "github.com/headgate/headgate/units"

// Pace returns the rate at which a window of bytes leaves within a time in picoseconds, at least
// 1 b/s.
func Pace(window, time float64) units.Rate {
	return max(units.Rate(window*8*float64(units.Second)/time), 1)
}

// LossGate lets a law answer losses once per round trip: the losses of one round trip have one cause.
type LossGate struct{ end units.Time }

// Answers reports whether an event is a loss that the law should answer. Losses within rtt after it are not
// answered.
func (g *LossGate) Answers(e Event, now, rtt units.Time) bool {
	if e != Loss || now < g.end {
		return false
	}
	g.end = now + rtt
	return true
}

// DelayWindow is the congestion window of a law that holds a delay at a target (Swift, LEDBAT). Other
// laws may steer it (PrioPlus). The law owns it.
type DelayWindow struct {
	Untimed
	LineRate    units.Rate
	MSS         units.Bytes
	Bytes       float64    // the window; in floating point so that steps of less than a byte add up
	Least, Most float64    // bounds of the window
	RTT         units.Time // the latest round trip, 0 before the first

	// The additive increase per round trip is the law's own times Scale, plus Extra bytes.
	Scale, Extra float64
}

// NewDelayWindow returns a window of first bytes. Most is 0 for no bound.
func NewDelayWindow(line units.Rate, mss units.Bytes, first, least float64, most units.Bytes) DelayWindow {
	if most == 0 {
		most = Unbounded
	}
	return DelayWindow{LineRate: line, MSS: mss, Bytes: first, Least: least, Most: float64(most), Scale: 1}
}

// Move changes the window by the acknowledged bytes' share of a round trip's step. A window of less than a
// packet moves by a step per packet.
func (w *DelayWindow) Move(step float64, acked units.Bytes) {
	w.Bytes += step * float64(acked) / max(w.Bytes, float64(w.MSS))
}

// Bound brings the window within its bounds.
func (w *DelayWindow) Bound() { w.Bytes = min(max(w.Bytes, w.Least), w.Most) }

// Window returns the window in bytes.
func (w *DelayWindow) Window() float64 { return w.Bytes }

// SetWindow sets the window in bytes, within its bounds.
func (w *DelayWindow) SetWindow(bytes float64) {
	w.Bytes = bytes
	w.Bound()
}

// SetIncrease sets Scale and Extra.
func (w *DelayWindow) SetIncrease(scale, extra float64) { w.Scale, w.Extra = scale, extra }

// Allowance implements Law. A window of less than a packet is paced (Swift, Algorithm 1, lines 29 to
// 32; RFC 6817's MIN_CWND excludes it, PrioPlus does not); acknowledgements clock larger ones.
func (w *DelayWindow) Allowance() Allowance {
	a := Allowance{Rate: w.LineRate, Window: max(units.Bytes(w.Bytes), 1)}
	if w.Bytes < float64(w.MSS) && w.RTT > 0 {
		a.Rate = Pace(w.Bytes, float64(w.RTT))
	}
	return a
}

// Round detects round trips by sequence numbers, for laws that act once per window. A round ends with the
// acknowledgement of the first byte that was sent after the round began. The zero value begins its first round
// with the first acknowledgement.
type Round struct {
	end   uint64
	begun bool
}

// Passed reports whether a ends a round, and if so begins the next. The very first acknowledgement only begins
// a round.
func (r *Round) Passed(a *Ack) bool {
	if !r.begun {
		r.Begin(a.SentSeq)
		return false
	}
	if a.AckedSeq <= r.end {
		return false
	}
	r.end = a.SentSeq
	return true
}

// Begin begins a round now; next is the first byte not yet sent.
func (r *Round) Begin(next uint64) { r.end, r.begun = next, true }

// Begun reports whether a round has begun.
func (r *Round) Begun() bool { return r.begun }
