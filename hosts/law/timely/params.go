package timely

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; zero values take defaults where there are any, the
// paper's (§6) with increases scaled from its 10 Gb/s to LineRate.
type Params struct {
	// LineRate is the NIC's payload rate, where a flow starts and its ceiling; must be set.
	LineRate units.Rate
	// MinRTT normalises the gradient; the base round trip, 20 µs in the paper; must be set.
	MinRTT units.Time
	// MinRate is the floor; LineRate/1000 by default.
	MinRate units.Rate
	// StartRate is the rate of a flow that starts; LineRate by default, as RDMA NICs do.
	// The paper starts at LineRate over the host's flows.
	StartRate units.Rate
	// LowRTT and HighRTT bound where the gradient decides: below, the flow always
	// increases, above, it always decreases. MinRTT + 30 µs and MinRTT + 480 µs by default,
	// which is the paper's 50 and 500 µs for its 20 µs.
	LowRTT, HighRTT units.Time
	// Alpha is the weight of a new round trip in the difference's moving average, 0 < α ≤
	// 1; 0.875 by default.
	Alpha float64
	// Beta is the factor of decrease, 0 < β ≤ 1; 0.8 by default.
	Beta float64
	// Increase is δ; LineRate/1000 by default, the paper's 10 Mb/s at 10 Gb/s.
	Increase units.Rate
	// HyperAfter is N of hyperactive increase: after so many increases in a row by the
	// gradient a step is HyperFactor·δ. 5 and 5 by default.
	HyperAfter  int
	HyperFactor float64
}

func (p Params) withDefaults() (Params, error) {
	setDefault(&p.MinRate, max(p.LineRate/1000, 1))
	setDefault(&p.StartRate, p.LineRate)
	setDefault(&p.LowRTT, p.MinRTT+30*units.Microsecond)
	setDefault(&p.HighRTT, p.MinRTT+480*units.Microsecond)
	setDefault(&p.Alpha, 0.875)
	setDefault(&p.Beta, 0.8)
	setDefault(&p.Increase, max(p.LineRate/1000, 1))
	setDefault(&p.HyperAfter, 5)
	setDefault(&p.HyperFactor, 5)
	switch {
	case p.LineRate <= 0:
		return p, fmt.Errorf("line rate %v: want a rate above 0", p.LineRate)
	case p.MinRTT <= 0:
		return p, fmt.Errorf("min RTT %v: want a time above 0", p.MinRTT)
	case p.MinRate < 0 || p.MinRate > p.LineRate:
		return p, fmt.Errorf("min rate %v: want more than 0 and at most the line rate, %v", p.MinRate, p.LineRate)
	case p.StartRate < p.MinRate || p.StartRate > p.LineRate:
		return p, fmt.Errorf("start rate %v: want %v to the line rate, %v", p.StartRate, p.MinRate, p.LineRate)
	case p.LowRTT < 0:
		return p, fmt.Errorf("low RTT %v: want a time above 0", p.LowRTT)
	case p.HighRTT <= p.LowRTT:
		return p, fmt.Errorf("high RTT %v: want more than the low RTT, %v", p.HighRTT, p.LowRTT)
	case !(p.Alpha > 0 && p.Alpha <= 1): // catches NaN too
		return p, fmt.Errorf("alpha %v: want more than 0 and at most 1", p.Alpha)
	case !(p.Beta > 0 && p.Beta <= 1):
		return p, fmt.Errorf("beta %v: want more than 0 and at most 1", p.Beta)
	case p.Increase < 0:
		return p, fmt.Errorf("increase %v: want a rate above 0", p.Increase)
	case p.HyperAfter < 0:
		return p, fmt.Errorf("hyper after %d: want 1 or more", p.HyperAfter)
	case !(p.HyperFactor >= 1 && p.HyperFactor <= 1000):
		return p, fmt.Errorf("hyper factor %v: want 1 to 1000", p.HyperFactor)
	}
	return p, nil
}

func setDefault[T int | float64 | units.Time | units.Rate](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
