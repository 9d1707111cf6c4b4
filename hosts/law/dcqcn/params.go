package dcqcn

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Params are the parameters of the reaction point. Zero values take the defaults of the
// paper (Table 14), those of increase scaled from its 40 Gb/s to LineRate.
type Params struct {
	// LineRate is the NIC's payload rate, where a flow starts and its ceiling; must be set.
	LineRate units.Rate
	// MinRate is the floor; LineRate/1000 by default, at most LineRate.
	MinRate units.Rate
	// Gain is g of the estimate of congestion, 0 < g < 1; 1/256 by default.
	Gain float64
	// AlphaTimer is after how long without a notification alpha falls; 55 µs by default.
	AlphaTimer units.Time
	// IncreaseTimer is T of the rate increase; 55 µs by default (300 µs in Vendor).
	IncreaseTimer units.Time
	// ByteCounter is B of the rate increase, payload sent between events; 10 MB by
	// default, NoByteCounter for none.
	ByteCounter units.Bytes
	// FastRecovery is F, the events that only halve the distance to the target rate; 5 by
	// default, at least 1.
	FastRecovery int
	// AdditiveIncrease and HyperIncrease are what an event adds to the target rate; 40 and
	// 400 Mb/s at 40 Gb/s by default.
	AdditiveIncrease, HyperIncrease units.Rate
	// CutInterval is the least time between two cuts. A notification that comes sooner
	// waits for it. 0, the default, cuts at every notification, as the paper does; NICs
	// have 4 µs and PACC counts on it.
	CutInterval units.Time
	// KeepTarget leaves the target rate alone when a flow is cut again before it has
	// increased, as NICs do ("clamp target rate" off). The paper and PACC's Equation 1
	// lower it with each cut.
	KeepTarget bool
}

// NoByteCounter turns the byte counter off; the timer alone drives the increase, as in
// public models of NICs.
const NoByteCounter units.Bytes = -1

// Vendor returns the parameters of NICs as the public HPCC simulator has them: T 300 µs,
// alpha every 1 µs, cuts 4 µs apart, one step of fast recovery, no byte counter, 5 and
// 50 Mb/s of increase per 25 Gb/s of line rate. PACC's (τ', T_i) = (1, 300) is this.
func Vendor(line units.Rate) Params {
	return Params{
		LineRate: line, AlphaTimer: units.Microsecond, IncreaseTimer: 300 * units.Microsecond,
		ByteCounter: NoByteCounter, FastRecovery: 1, CutInterval: 4 * units.Microsecond,
		AdditiveIncrease: max(line/5000, 1), HyperIncrease: max(line/500, 1), KeepTarget: true,
	}
}

func (p Params) withDefaults() (Params, error) {
	setDefault(&p.MinRate, max(p.LineRate/1000, 1))
	setDefault(&p.Gain, 1.0/256)
	setDefault(&p.AlphaTimer, 55*units.Microsecond)
	setDefault(&p.IncreaseTimer, 55*units.Microsecond)
	setDefault(&p.ByteCounter, 10*units.MB)
	setDefault(&p.FastRecovery, 5)
	setDefault(&p.AdditiveIncrease, max(p.LineRate/1000, 1))
	setDefault(&p.HyperIncrease, max(p.LineRate/100, 1))
	switch {
	case p.LineRate <= 0:
		return p, fmt.Errorf("line rate %v: want a rate above 0", p.LineRate)
	case p.MinRate < 0 || p.MinRate > p.LineRate:
		return p, fmt.Errorf("min rate %v: want more than 0 and at most the line rate, %v", p.MinRate, p.LineRate)
	case !(p.Gain > 0 && p.Gain < 1): // catches NaN too
		return p, fmt.Errorf("gain %v: want more than 0 and less than 1", p.Gain)
	case p.AlphaTimer < 0:
		return p, fmt.Errorf("alpha timer %v: want a time above 0", p.AlphaTimer)
	case p.IncreaseTimer < 0:
		return p, fmt.Errorf("increase timer %v: want a time above 0", p.IncreaseTimer)
	case p.ByteCounter < 0 && p.ByteCounter != NoByteCounter:
		return p, fmt.Errorf("byte counter %d B: want more than 0, or %d for none", int64(p.ByteCounter), int64(NoByteCounter))
	case p.FastRecovery < 0:
		return p, fmt.Errorf("fast recovery %d: want 1 step or more", p.FastRecovery)
	case p.AdditiveIncrease < 0:
		return p, fmt.Errorf("additive increase %v: want a rate above 0", p.AdditiveIncrease)
	case p.HyperIncrease < 0:
		return p, fmt.Errorf("hyper increase %v: want a rate above 0", p.HyperIncrease)
	case p.CutInterval < 0:
		return p, fmt.Errorf("cut interval %v: want 0 or more", p.CutInterval)
	}
	return p, nil
}

func setDefault[T int | float64 | units.Time | units.Bytes | units.Rate](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
