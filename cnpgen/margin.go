package cnpgen

import (
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
