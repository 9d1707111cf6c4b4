package cnpgen

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// Margin is what the paper's analysis (§IV) says of parameters at a line rate.
type Margin struct {
	Phase     float64 // degrees; the loop is stable by Bode's criterion when it is above 0
	Crossover float64 // where |G| = 1, radians per second
	K         float64 // gain of G, 1/s³
	Z         float64 // zero of G, radians per second
	Alpha     float64 // the α* used
}

// PhaseMargin analyses the open loop of Eq. 16,
//
//	G(s) = −K·(1 + s/z)·e^(−2sT)/s³,  K = C·β1·α*/(2T²),  z = β1/((β2 + β1/2)·T),
//
// with C in KB of 1000 B per second. The phase margin is 180° more than G's phase where
// |G| = 1, in the paper's convention that the sign of −K turns by +180° and each
// integrator by −90°: 90° + atan(ω/z) − 2ωT.
func (p Params) PhaseMargin(rate units.Rate, r Reaction) Margin {
	t := p.Interval.Seconds()
	c := float64(rate) / 8 / bytesPerKB
	m := Margin{
		Alpha: r.Alpha(),
		Z:     p.Beta1 / ((p.Beta2 + p.Beta1/2) * t),
	}
	m.K = c * p.Beta1 * m.Alpha / (2 * t * t)
	m.Crossover = crossover(m.K*t*t*t, m.Z*t) / t
	m.Phase = degrees(math.Pi/2 + math.Atan(m.Crossover/m.Z) - 2*m.Crossover*t)
	return m
}

// crossover solves k·√(1 + (x/z)²) = x³ for x above 0, which has one solution: the left
// side over x³ falls.
func crossover(k, z float64) float64 {
	low, high := math.Log(1e-12), math.Log(1e12)
	for range 64 {
		mid := (low + high) / 2
		x := math.Exp(mid)
		if math.Log(k)+math.Log(math.Hypot(1, x/z)) > 3*mid {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

func degrees(rad float64) float64 { return rad * 180 / math.Pi }

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
