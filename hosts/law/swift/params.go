package swift

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; zero values take defaults where there are any.
type Params struct {
	// LineRate is the payload rate at which a window leaves; must be set.
	LineRate units.Rate
	// BaseRTT is the round trip of an empty path; must be set.
	BaseRTT units.Time
	// MSS is the payload of a full packet; must be set.
	MSS units.Bytes
	// Target is the base target delay (§3.2), a round trip; BaseRTT + 25 µs by default,
	// more than BaseRTT.
	Target units.Time
	// Hops and PerHop scale the target with the path's length (§3.5, topology-based
	// scaling): PerHop, ħ, is added for each of the Hops. 0 by default.
	Hops   int
	PerHop units.Time
	// ScalingRange is fs_range of flow-based scaling (§3.5): how much is added to the
	// target of a flow whose window is ScalingMin or less. 0, the default, turns it off;
	// the paper has some four times the base target.
	ScalingRange units.Time
	// ScalingMin and ScalingMax are fs_min_cwnd and fs_max_cwnd in packets; 0.1 and 100 by
	// default.
	ScalingMin, ScalingMax float64
	// Increase is ai, what the window grows by in a round trip below the target;
	// bandwidth-delay product over 200 by default, as in PrioPlus' artifact.
	Increase units.Bytes
	// Beta is β of the decrease, 0 < β ≤ 1; 0.8 by default.
	Beta float64
	// MaxMDF is max_mdf, the largest part of the window that one decrease takes, 0 <
	// max_mdf < 1; 0.5 by default.
	MaxMDF float64
	// InitialWindow is the window of a flow that starts; one bandwidth-delay product by
	// default.
	InitialWindow units.Bytes
	// MinWindow and MaxWindow bound the window; a hundredth of a packet and no bound by
	// default.
	MinWindow float64 // bytes
	MaxWindow units.Bytes
	// RetxReset is how many losses in a row without progress reset the window to its least
	// (RETX_RESET_THRESHOLD); 5 by default.
	RetxReset int
}

func (p Params) withDefaults() (Params, error) {
	bdp := p.LineRate.In(p.BaseRTT)
	setDefault(&p.Target, p.BaseRTT+25*units.Microsecond)
	setDefault(&p.ScalingMin, 0.1)
	setDefault(&p.ScalingMax, 100)
	setDefault(&p.Increase, max(bdp/200, 1))
	setDefault(&p.Beta, 0.8)
	setDefault(&p.MaxMDF, 0.5)
	setDefault(&p.InitialWindow, max(bdp, p.MSS))
	setDefault(&p.MinWindow, float64(p.MSS)/100)
	setDefault(&p.MaxWindow, 1<<62)
	setDefault(&p.RetxReset, 5)
	switch {
	case p.LineRate <= 0:
		return p, fmt.Errorf("line rate %v: want a rate above 0", p.LineRate)
	case p.BaseRTT <= 0:
		return p, fmt.Errorf("base RTT %v: want a time above 0", p.BaseRTT)
	case p.MSS < 1:
		return p, fmt.Errorf("MSS %d B: want at least 1 B", int64(p.MSS))
	case p.Target <= p.BaseRTT:
		return p, fmt.Errorf("target %v: want more than the base RTT, %v", p.Target, p.BaseRTT)
	case p.Hops < 0:
		return p, fmt.Errorf("hops %d: want 0 or more", p.Hops)
	case p.PerHop < 0:
		return p, fmt.Errorf("per hop %v: want 0 or more", p.PerHop)
	case p.ScalingRange < 0:
		return p, fmt.Errorf("scaling range %v: want 0 (off) or more", p.ScalingRange)
	case !(p.ScalingMin > 0): // catches NaN too
		return p, fmt.Errorf("scaling min %v: want more than 0 packets", p.ScalingMin)
	case !(p.ScalingMax > p.ScalingMin):
		return p, fmt.Errorf("scaling max %v: want more than the scaling min, %v packets", p.ScalingMax, p.ScalingMin)
	case p.Increase < 1:
		return p, fmt.Errorf("increase %d B: want at least 1 B", int64(p.Increase))
	case !(p.Beta > 0 && p.Beta <= 1):
		return p, fmt.Errorf("beta %v: want more than 0 and at most 1", p.Beta)
	case !(p.MaxMDF > 0 && p.MaxMDF < 1):
		return p, fmt.Errorf("max MDF %v: want more than 0 and less than 1", p.MaxMDF)
	case !(p.MinWindow >= 1):
		return p, fmt.Errorf("min window %v B: want at least 1 B", p.MinWindow)
	case float64(p.MaxWindow) < p.MinWindow:
		return p, fmt.Errorf("max window %d B: want at least the min window, %v B, or 0 for no bound", int64(p.MaxWindow), p.MinWindow)
	case p.InitialWindow < 1 || p.InitialWindow > p.MaxWindow:
		return p, fmt.Errorf("initial window %d B: want 1 B to the max window, %v", int64(p.InitialWindow), p.MaxWindow)
	case p.RetxReset < 1:
		return p, fmt.Errorf("retx reset %d: want 1 loss or more", p.RetxReset)
	}
	return p, nil
}

func setDefault[T int | float64 | units.Time | units.Bytes](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
