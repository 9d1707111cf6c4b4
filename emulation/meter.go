package emulation

import (
	"slices"

	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// PauseMeter counts the PFC frames that come to the end of one wire and for how long they
// stop whoever sends there, by the frames alone. The loop's goroutine owns it.
type PauseMeter struct {
	rate units.Rate // of the port that is paused; its bit times are the quanta's

	until  [packet.PFCClasses]units.Time // 0 or past: not paused
	paused packet.Pauses                 // the times in which at least one class was

	// A frame that pauses no class that was not paused already is a refresh.
	pauses, refreshes, resumes uint64
}

// Saw takes a PFC frame.
func (m *PauseMeter) Saw(p *packet.PFC, now units.Time) {
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
		m.until[c] = now + m.rate.PauseTime(p.Quanta[c])
	}
	m.paused.Set(now, slices.Max(m.until[:]))
	switch {
	case fresh:
		m.pauses++
	case pauses:
		m.refreshes++
	default:
		m.resumes++
	}
}

// Meters is one meter for each wire.
type Meters []PauseMeter

// NewMeters returns meters for wires; a PAUSE that comes by a wire stops its opposite.
func NewMeters(wires []network.Wire) Meters {
	m := make(Meters, len(wires))
	for i := range wires {
		m[i].rate = wires[i^1].Rate
	}
	return m
}

// frames returns the PAUSE frames of all wires so far, refreshes left out.
func (m Meters) frames() (n uint64) {
	for i := range m {
		n += m[i].pauses
	}
	return n
}
