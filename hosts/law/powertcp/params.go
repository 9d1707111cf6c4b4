package powertcp

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; zero values take defaults where there are any.
type Params struct {
	// LineRate is the NIC's rate; must be set.
	LineRate units.Rate
	// BaseRTT is τ, the longest base round trip (§3.3); must be set.
	BaseRTT units.Time
	// MSS is the payload of a full packet, the least window; must be set.
	MSS units.Bytes
	// Gamma is γ of the window's moving average, 0 < γ ≤ 1; 0.9 by default (§3.3).
	Gamma float64
	// Increase is β, added to the window once per update; by default LineRate·τ/Flows
	// (§3.3).
	Increase units.Bytes
	// Flows is N of the default Increase, how many flows a host is expected to send at a
	// time; 100 by default.
	Flows int
	// Theta selects θ-PowerTCP (§3.5): no telemetry, the power from the round trip and its
	// gradient, one update per round trip.
	Theta bool
}

func (p Params) withDefaults() (Params, error) {
	if p.Gamma == 0 {
		p.Gamma = 0.9
	}
	if p.Flows == 0 {
		p.Flows = 100
	}
	switch {
	case p.LineRate <= 0:
		return p, fmt.Errorf("line rate %v: want a rate above 0", p.LineRate)
	case p.BaseRTT <= 0:
		return p, fmt.Errorf("base RTT %v: want a time above 0", p.BaseRTT)
	case p.MSS < 1:
		return p, fmt.Errorf("MSS %d B: want at least 1 B", int64(p.MSS))
	case p.LineRate.In(p.BaseRTT) < p.MSS:
		return p, fmt.Errorf("base RTT %v: want at least a packet's time at the line rate, %v", p.BaseRTT, p.LineRate.TxTime(p.MSS))
	case !(p.Gamma > 0 && p.Gamma <= 1): // catches NaN too
		return p, fmt.Errorf("gamma %v: want more than 0 and at most 1", p.Gamma)
	case p.Flows < 1:
		return p, fmt.Errorf("flows %d: want 1 or more", p.Flows)
	case p.Increase < 0:
		return p, fmt.Errorf("increase %d B: want more than 0", int64(p.Increase))
	}
	if p.Increase == 0 {
		p.Increase = max(p.LineRate.In(p.BaseRTT)/units.Bytes(p.Flows), 1)
	}
	return p, nil
}
