// Package channel computes PrioPlus' channels (Zhang et al., "Enabling Virtual Priority in Data Center
// Congestion Control", EuroSys 2025, §4.3.2). It maps virtual priorities to delays. It also computes the width
// that a channel needs for the fluctuation of the law underneath and the noise of delay measurements.
package channel

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// MaxPriority bounds virtual priorities. Delays allow for far fewer.
const MaxPriority = 1 << 16

// Plan divides the delays of one queue among virtual priorities. Priority i, from 1 on (larger is higher), has
// the target Base + i·(Fluctuation + Noise).
type Plan struct {
	// Base is the delay of an empty path, of the kind that hosts measure; 0 or more.
	Base units.Time
	// Fluctuation is A, how far the law underneath swings; more than 0. The paper has
	// 3.2 µs, for 150 Swift flows.
	Fluctuation units.Time
	// Noise is B, the measurement noise of a delay that the plan tolerates; 0 or more. The paper has 0.8 µs,
	// the 99.85th percentile of its testbed.
	Noise units.Time
}

// Channel is the part of the delays that belongs to one priority.
type Channel struct {
	Target units.Time // D_target, that its flows hold
	Limit  units.Time // D_limit, from which its flows stop
}

// Paper returns the plan of the paper's evaluation over a base delay.
func Paper(base units.Time) Plan {
	return Plan{Base: base, Fluctuation: 3200 * units.Nanosecond, Noise: 800 * units.Nanosecond}
}

// Check returns an error that names the field that is wrong and what is allowed.
func (p Plan) Check() error {
	switch {
	case p.Base < 0:
		return fmt.Errorf("base delay %v: want 0 or more", p.Base)
	case p.Fluctuation <= 0:
		return fmt.Errorf("fluctuation %v: want more than 0", p.Fluctuation)
	case p.Noise < 0:
		return fmt.Errorf("noise %v: want 0 or more", p.Noise)
	case p.Base > units.Second || p.Fluctuation > units.Second || p.Noise > units.Second:
		return fmt.Errorf("base delay %v, fluctuation %v and noise %v: want at most 1s each", p.Base, p.Fluctuation, p.Noise)
	}
	return nil
}

// Width returns A + B, the distance between the targets of neighbours.
func (p Plan) Width() units.Time { return p.Fluctuation + p.Noise }

// Channel returns the channel of a priority, 1 to MaxPriority:
//
//	D_target = Base + i·(A + B)    D_limit = D_target + A/2 + B
//
// A's other half lies between a limit and the next higher target.
func (p Plan) Channel(priority int) (Channel, error) {
	if err := p.Check(); err != nil {
		return Channel{}, err
	}
	if priority < 1 || priority > MaxPriority {
		return Channel{}, fmt.Errorf("priority %d: want 1 to %d", priority, MaxPriority)
	}
	target := p.Base + units.Time(priority)*p.Width()
	return Channel{Target: target, Limit: target + p.Fluctuation/2 + p.Noise}, nil
}

// Priorities returns the largest number of priorities for which the highest limit is at most longest; 0 if not
// even one fits.
func (p Plan) Priorities(longest units.Time) int {
	if p.Check() != nil {
		return 0
	}
	room := longest - p.Base - p.Fluctuation/2 - p.Noise
	if room < 0 {
		return 0
	}
	return int(min(room/p.Width(), MaxPriority))
}

// Swift holds the parameters that determine how far n Swift flows make the delay swing.
type Swift struct {
	Flows    float64     // n, more than 0
	Increase units.Bytes // W_AI, per flow and round trip
	Rate     units.Rate  // rate of the link
	Target   units.Time  // target delay of the flows, base included
	Beta     float64     // β, 0 < β ≤ 1
	MaxMDF   float64     // max_mdf, 0 < max_mdf < 1
}

// Fluctuation returns the swing of the delay: the increase of all flows in one round trip
// beyond the target, plus the decrease that follows,
//
//	n·W_AI/C + min(n·β·W_AI/(C·target), max_mdf)·target
//
// The paper's text (§4.3.2) prints max instead of min. Swift's decrease is the lesser of the two
// (Swift, Algorithm 1, line 14), and only min gives the paper's numbers: 150 flows,
// steps of a thousandth of the bandwidth-delay product and β 0.8 give its 3.2 µs, while max
// gives at least max_mdf times the target, 6 µs and more.
func (s Swift) Fluctuation() (units.Time, error) {
	switch {
	case !(s.Flows > 0) || math.IsInf(s.Flows, 0): // catches NaN too
		return 0, fmt.Errorf("flows %v: want a finite number above 0", s.Flows)
	case s.Increase <= 0:
		return 0, fmt.Errorf("increase %d B: want more than 0", int64(s.Increase))
	case s.Rate <= 0:
		return 0, fmt.Errorf("rate %v: want a rate above 0", s.Rate)
	case s.Target <= 0:
		return 0, fmt.Errorf("target %v: want a time above 0", s.Target)
	case !(s.Beta > 0 && s.Beta <= 1):
		return 0, fmt.Errorf("beta %v: want more than 0 and at most 1", s.Beta)
	case !(s.MaxMDF > 0 && s.MaxMDF < 1):
		return 0, fmt.Errorf("max MDF %v: want more than 0 and less than 1", s.MaxMDF)
	}
	rise := s.Flows * float64(s.Increase) * 8 * float64(units.Second) / float64(s.Rate)
	fall := min(s.Beta*rise/float64(s.Target), s.MaxMDF) * float64(s.Target)
	if rise+fall > float64(units.Second) {
		return 0, fmt.Errorf("flows %v: their steps of %v swing the delay by more than 1s", s.Flows, s.Increase)
	}
	return units.Time(math.Round(rise + fall)), nil
}
