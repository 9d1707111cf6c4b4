package hpcc

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; zero values take defaults where there are any.
type Params struct {
	// LineRate is the NIC's rate B; must be set.
	LineRate units.Rate
	// BaseRTT is T, the same for all flows of a fabric: a little more than its longest
	// base round trip (§3.3); must be set.
	BaseRTT units.Time
	// MSS is the payload of a full packet, the least window; must be set.
	MSS units.Bytes
	// Eta is the target utilisation η, 0 < η ≤ 1; 0.95 by default (§3.3).
	Eta float64
	// MaxStage is how many round trips of additive increase come before a multiplicative
	// one, 5 by default (§3.3); NoStages for none.
	MaxStage int
	// Increase is W_AI. By default W_init·(1 − η)/N (§3.3) for Flows.
	Increase units.Bytes
	// Flows is N of the default Increase, how many flows a link is expected to carry; 100
	// by default.
	Flows int
}

// NoStages is a MaxStage of 0: each update divides by the utilisation, as the public
// simulator's configuration has it.
const NoStages = -1

func (p Params) withDefaults() (Params, error) {
	if p.Eta == 0 {
		p.Eta = 0.95
	}
	if p.MaxStage == 0 {
		p.MaxStage = 5
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
	case !(p.Eta > 0 && p.Eta <= 1): // catches NaN too
		return p, fmt.Errorf("eta %v: want more than 0 and at most 1", p.Eta)
	case p.MaxStage < NoStages:
		return p, fmt.Errorf("max stage %d: want 1 or more, or %d for none", p.MaxStage, NoStages)
	case p.Flows < 1:
		return p, fmt.Errorf("flows %d: want 1 or more", p.Flows)
	case p.Increase < 0:
		return p, fmt.Errorf("increase %d B: want more than 0", int64(p.Increase))
	}
	if p.MaxStage == NoStages {
		p.MaxStage = 0
	}
	if p.Increase == 0 {
		p.Increase = max(units.Bytes(float64(p.LineRate.In(p.BaseRTT))*(1-p.Eta)/float64(p.Flows)), 1)
	}
	return p, nil
}
