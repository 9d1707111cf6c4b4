package law

// Round tells round trips apart by sequence numbers, as laws that act once per window do: a
// round ends with the acknowledgement of the first byte that was sent after the round
// began. The zero value begins its first round with the first acknowledgement.
type Round struct {
	end   uint64
	begun bool
}

// Passed reports whether a ends a round, and if so begins the next. The first
// acknowledgement of all only begins one.
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
