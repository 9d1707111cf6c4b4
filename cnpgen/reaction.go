package cnpgen

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// Reaction describes DCQCN at the hosts and the path to them, for the analysis.
type Reaction struct {
	AlphaTimer    units.Time // τ': alpha falls by Gain after each such time without a CNP
	IncreaseTimer units.Time // T_i
	Gain          float64    // g
	// Delay is the time from when a CNP leaves the switch until its effect reaches the queue.
	Delay units.Time
	// Flows is the number of flows in the queue. The gain of the loop falls with it, because
	// a CNP cuts only one flow's share. Two is the fewest that can congest a link of their
	// own rate.
	Flows int
}

// VendorReaction is NICs' DCQCN as the paper has it, (τ', T_i) = (1, 300) µs and g = 1/256,
// two flows, and the paper's longest base round trip, 12 µs.
func VendorReaction() Reaction {
	return Reaction{
		AlphaTimer: units.Microsecond, IncreaseTimer: 300 * units.Microsecond, Gain: 1.0 / 256,
		Delay: 12 * units.Microsecond, Flows: 2,
	}
}

// Stretch returns r with all times s times longer, for a fabric that runs s times slower.
func (r Reaction) Stretch(s float64) Reaction {
	r.AlphaTimer, r.IncreaseTimer = stretch(r.AlphaTimer, s), stretch(r.IncreaseTimer, s)
	r.Delay = stretch(r.Delay, s)
	return r
}

// Alpha is α* = √(2τ'/(3T_i)), alpha at the operating point (appendix A): 0.04714 for
// (1, 300).
func (r Reaction) Alpha() float64 {
	return math.Sqrt(2 * float64(r.AlphaTimer) / (3 * float64(r.IncreaseTimer)))
}

// Validate reports the first value outside its range.
func (r Reaction) Validate() error {
	switch {
	case r.AlphaTimer <= 0:
		return fmt.Errorf("alpha timer: %v, want more than 0", r.AlphaTimer)
	case r.IncreaseTimer <= r.AlphaTimer:
		return fmt.Errorf("increase timer: %v, want more than the alpha timer, %v", r.IncreaseTimer, r.AlphaTimer)
	case !(r.Gain > 0 && r.Gain < 1):
		return fmt.Errorf("gain: %v, want more than 0 and less than 1", r.Gain)
	case r.Delay < 0:
		return fmt.Errorf("delay: %v, want 0 or more", r.Delay)
	case r.Flows < 1:
		return fmt.Errorf("flows: %d, want at least 1", r.Flows)
	}
	return nil
}
