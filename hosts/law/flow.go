package law

import (
	"math/rand/v2"

	"github.com/headgate/headgate/units"
)

// Flow is what a law may know of its flow and path when the flow starts.
type Flow struct {
	Rate     units.Rate  // of the host's NIC, as seen by payload
	BaseRTT  units.Time  // of a full packet and its ACK over the empty path; 0 when unknown
	OneWay   units.Time  // of a full packet over the empty path; 0 where nobody measures it
	MSS      units.Bytes // payload of a full packet
	Hops     int         // links on the path; 0 when unknown
	Size     units.Bytes // 0 for a flow without end
	Deadline units.Time  // after its start; 0 for none
	Weight   float64
	// Target and Limit are the flow's channel (PrioPlus), with the base delay included;
	// 0 where the law's own parameters say it.
	Target, Limit units.Time
	Scale         float64    // by what the papers' times are stretched; 0 means 1
	Rand          *rand.Rand // the laws' stream
}

// BDP returns the payload that fills the base round trip.
func (f *Flow) BDP() units.Bytes { return f.Rate.In(f.BaseRTT) }

// Stretch returns one of the papers' times as it is on this path.
func (f *Flow) Stretch(t units.Time) units.Time {
	if f.Scale == 0 {
		return t
	}
	return units.Time(float64(t) * f.Scale)
}
