package dctcp

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
	// Gain is g of alpha's moving average, 0 < g ≤ 1; 1/16 by default (§3.1, §4 of the
	// DCTCP paper, RFC 8257 §4.2).
	Gain float64
	// Increase is what the window grows by in a round trip without marks; one MSS by
	// default, as in TCP.
	Increase units.Bytes
	// InitialWindow is the window of a flow that starts, ten packets by default (RFC
	// 6928). It doubles per round trip until the first mark or loss.
	InitialWindow units.Bytes
	// MaxWindow bounds the window; 0, the default, is no bound.
	MaxWindow units.Bytes

	// Deadline, when set, makes the law D2TCP: the flow wants to be done this long after
	// its start.
	Deadline units.Time
	// Size is the flow's payload; with Deadline it must be set.
	Size units.Bytes
	// MinUrgency and MaxUrgency bound d, 0.5 and 2.0 by default (D2TCP §3.2.3).
	MinUrgency, MaxUrgency float64
}

func (p Params) withDefaults() (Params, error) {
	setDefault(&p.Gain, 1.0/16)
	setDefault(&p.Increase, p.MSS)
	setDefault(&p.InitialWindow, 10*p.MSS)
	setDefault(&p.MaxWindow, 1<<62)
	setDefault(&p.MinUrgency, 0.5)
	setDefault(&p.MaxUrgency, 2)
	switch {
	case p.LineRate <= 0:
		return p, fmt.Errorf("line rate %v: want a rate above 0", p.LineRate)
	case p.MSS < 1:
		return p, fmt.Errorf("MSS %d B: want at least 1 B", int64(p.MSS))
	case !(p.Gain > 0 && p.Gain <= 1): // catches NaN too
		return p, fmt.Errorf("gain %v: want more than 0 and at most 1", p.Gain)
	case p.Increase < 1:
		return p, fmt.Errorf("increase %d B: want at least 1 B", int64(p.Increase))
	case p.InitialWindow < p.MSS:
		return p, fmt.Errorf("initial window %d B: want at least one packet, %v", int64(p.InitialWindow), p.MSS)
	case p.MaxWindow < p.InitialWindow:
		return p, fmt.Errorf("max window %d B: want at least the initial window, %v, or 0 for no bound", int64(p.MaxWindow), p.InitialWindow)
	case p.Deadline < 0:
		return p, fmt.Errorf("deadline %v: want a time above 0, or 0 for none", p.Deadline)
	case p.Deadline > 0 && p.Size <= 0:
		return p, fmt.Errorf("size %d B: want the flow's size, more than 0, for a deadline", int64(p.Size))
	case !(p.MinUrgency > 0 && p.MinUrgency <= 1):
		return p, fmt.Errorf("min urgency %v: want more than 0 and at most 1", p.MinUrgency)
	case !(p.MaxUrgency >= 1 && p.MaxUrgency <= 100):
		return p, fmt.Errorf("max urgency %v: want 1 to 100", p.MaxUrgency)
	}
	return p, nil
}

func setDefault[T float64 | units.Bytes](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
