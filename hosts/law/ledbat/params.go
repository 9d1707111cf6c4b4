package ledbat

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; zero values take defaults where there are any.
type Params struct {
	// LineRate is the payload rate at which a window leaves; must be set.
	LineRate units.Rate
	// MSS is the payload of a full packet; must be set.
	MSS units.Bytes
	// Target is TARGET, the queueing delay sought; 25 µs by default. RFC 6817 allows at
	// most 100 ms, for the Internet.
	Target units.Time
	// Gain is GAIN, the packets that the window grows by in a round trip on an empty path,
	// 0 < GAIN ≤ 1 by the RFC; 1 by default. PrioPlus may go beyond 1, to 100.
	Gain float64
	// Filter is CURRENT_FILTER, of how many delays the least counts, 1 to 16; 4 by default.
	Filter int
	// BaseDelay is the delay of an empty path, where it is known; 0, the default, takes
	// the least delay of the last BaseHistory intervals of BaseInterval.
	BaseDelay units.Time
	// BaseHistory is BASE_HISTORY, 1 to 16 intervals; 10 by default.
	BaseHistory int
	// BaseInterval is a minute by default, as in the RFC.
	BaseInterval units.Time
	// AllowedIncrease is ALLOWED_INCREASE: how many packets the window may grow beyond
	// what is in flight; 1 by default.
	AllowedIncrease float64
	// InitialWindow and MinWindow are INIT_CWND and MIN_CWND; two packets by default.
	// MinWindow may be less than a packet.
	InitialWindow units.Bytes
	MinWindow     units.Bytes
	// MaxWindow bounds the window; no bound by default.
	MaxWindow units.Bytes
}

func (p Params) withDefaults() (Params, error) {
	setDefault(&p.Target, 25*units.Microsecond)
	setDefault(&p.Gain, 1)
	setDefault(&p.Filter, 4)
	setDefault(&p.BaseHistory, 10)
	setDefault(&p.BaseInterval, 60*units.Second)
	setDefault(&p.AllowedIncrease, 1)
	setDefault(&p.InitialWindow, 2*p.MSS)
	setDefault(&p.MinWindow, 2*p.MSS)
	setDefault(&p.MaxWindow, 1<<62)
	switch {
	case p.LineRate <= 0:
		return p, fmt.Errorf("line rate %v: want a rate above 0", p.LineRate)
	case p.MSS < 1:
		return p, fmt.Errorf("MSS %d B: want at least 1 B", int64(p.MSS))
	case p.Target <= 0 || p.Target > 100*units.Millisecond:
		return p, fmt.Errorf("target %v: want more than 0 and at most 100ms", p.Target)
	case !(p.Gain > 0 && p.Gain <= 100): // catches NaN too
		return p, fmt.Errorf("gain %v: want more than 0 and at most 100 packets", p.Gain)
	case p.Filter < 1 || p.Filter > maxKept:
		return p, fmt.Errorf("filter %d: want 1 to %d delays", p.Filter, maxKept)
	case p.BaseDelay < 0:
		return p, fmt.Errorf("base delay %v: want a time above 0, or 0 to measure it", p.BaseDelay)
	case p.BaseHistory < 1 || p.BaseHistory > maxKept:
		return p, fmt.Errorf("base history %d: want 1 to %d intervals", p.BaseHistory, maxKept)
	case p.BaseInterval < 0:
		return p, fmt.Errorf("base interval %v: want a time above 0", p.BaseInterval)
	case !(p.AllowedIncrease >= 0):
		return p, fmt.Errorf("allowed increase %v: want 0 packets or more", p.AllowedIncrease)
	case p.MinWindow < 1:
		return p, fmt.Errorf("min window %d B: want at least 1 B", int64(p.MinWindow))
	case p.MaxWindow < p.MinWindow:
		return p, fmt.Errorf("max window %d B: want at least the min window, %v, or 0 for no bound", int64(p.MaxWindow), p.MinWindow)
	case p.InitialWindow < p.MinWindow || p.InitialWindow > p.MaxWindow:
		return p, fmt.Errorf("initial window %d B: want %v to %v", int64(p.InitialWindow), p.MinWindow, p.MaxWindow)
	}
	return p, nil
}

func setDefault[T int | float64 | units.Time | units.Bytes](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
