package soze

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; every flow of a fabric has the same P, K, Alpha,
// Beta and M, for they are what a queueing delay means to all of them.
type Params struct {
	// P is the queueing delay of a link that one flow fills at Alpha (the paper's p); > 0.
	// Small values lose utilisation, 3 µs at 100 Gb/s is the paper's.
	P units.Time
	// K is how far the queueing delay rises until the rate per weight has fallen to Beta
	// (k); > 0. Larger values tell rates apart better and queue longer; the paper has 37 µs.
	K units.Time
	// Alpha is the highest expected rate per unit of weight: the fastest link over the
	// smallest weight. A flow alone is held to Alpha·weight.
	Alpha units.Rate
	// Beta is the lowest expected rate per unit of weight, 0 < Beta < Alpha. Flows whose
	// share is below it still share by weight, but queue longer than P + K.
	Beta units.Rate
	// M is the exponent that one round trip's acknowledgements apply together, 0 < M < 2
	// (the fairness lemma's range for feedback without delay); see the package's
	// documentation for the range in which delayed feedback is stable. 0 takes DefaultM.
	M float64
	// MaxRate bounds a flow's rate, to the line rate of its NIC; 0 means Alpha.
	MaxRate units.Rate
	// MSS is the payload of a full packet; the window never falls below it.
	MSS units.Bytes
	// InitialWindow is what a flow sends before its first acknowledgement, paced at
	// MaxRate; 0 means eight packets.
	InitialWindow units.Bytes
}

// DefaultM is the exponent per round trip when none is given.
const DefaultM = 0.2

// withDefaults returns the parameters with defaults filled in, or what is wrong with them.
func (p Params) withDefaults() (Params, error) {
	if p.M == 0 {
		p.M = DefaultM
	}
	if p.MaxRate == 0 {
		p.MaxRate = p.Alpha
	}
	if p.InitialWindow == 0 {
		p.InitialWindow = 8 * p.MSS
	}
	switch {
	case p.P <= 0:
		return p, fmt.Errorf("p %v: want a queueing delay above 0", p.P)
	case p.K <= 0:
		return p, fmt.Errorf("k %v: want a range of queueing delay above 0", p.K)
	case p.Alpha <= 0:
		return p, fmt.Errorf("alpha %v: want a rate above 0", p.Alpha)
	case p.Beta <= 0 || p.Beta >= p.Alpha:
		return p, fmt.Errorf("beta %v: want a rate above 0 and below alpha, %v", p.Beta, p.Alpha)
	case !(p.M > 0 && p.M < 2): // catches NaN too
		return p, fmt.Errorf("m %v: want more than 0 and less than 2", p.M)
	case p.MaxRate < 0:
		return p, fmt.Errorf("max rate %d b/s: want a rate above 0, or 0 for alpha", int64(p.MaxRate))
	case p.MSS < 1:
		return p, fmt.Errorf("MSS %d B: want at least 1 B", int64(p.MSS))
	case p.InitialWindow < p.MSS:
		return p, fmt.Errorf("initial window %v: want at least one packet, %v", p.InitialWindow, p.MSS)
	}
	return p, nil
}

// CheckWeight returns an error unless w is a weight: finite and positive.
func CheckWeight(w float64) error {
	if !(w > 0) || math.IsInf(w, 0) {
		return fmt.Errorf("weight %v: want a finite number above 0", w)
	}
	return nil
}
