package compare

import (
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// pauseMeter counts the PFC frames that come to the end of one wire and for how long they
// stop whoever sends there, by the frames alone. The loop's goroutine owns it.
type pauseMeter struct {
	rate units.Rate // of the port that is paused; its bit times are the quanta's

	until [packet.PFCClasses]units.Time // 0 or past: not paused
	from  units.Time                    // accounted for up to here
	total units.Time                    // during which a class was paused

	// A frame that pauses no class that was not paused already is a refresh.
	pauses, refreshes, resumes uint64
}

// saw takes a PFC frame.
func (m *pauseMeter) saw(p *packet.PFC, now units.Time) {
	m.advance(now)
	var pauses, fresh bool
	for c := range m.until {
		if p.Enabled>>c&1 == 0 {
			continue
		}
		if p.Quanta[c] == 0 {
			m.until[c] = 0
			continue
		}
		pauses = true
		fresh = fresh || m.until[c] <= now
		m.until[c] = now + packet.QuantaTime(p.Quanta[c], m.rate)
	}
	switch {
	case fresh:
		m.pauses++
	case pauses:
		m.refreshes++
	default:
		m.resumes++
	}
}

// advance accounts for the time up to now.
func (m *pauseMeter) advance(now units.Time) {
	var last units.Time
	for _, t := range m.until {
		last = max(last, t)
	}
	if end := min(last, now); end > m.from {
		m.total += end - m.from
	}
	m.from = now
}

// meters is one meter for each wire.
type meters []pauseMeter

// newMeters returns meters for wires; a PAUSE that comes by a wire stops its opposite.
func newMeters(wires []inproc.Wire) meters {
	m := make(meters, len(wires))
	for i := range wires {
		m[i].rate = wires[i^1].Rate
	}
	return m
}

// frames returns the PAUSE frames of all wires so far, refreshes left out.
func (m meters) frames() (n uint64) {
	for i := range m {
		n += m[i].pauses
	}
	return n
}
