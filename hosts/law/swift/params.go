package swift

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; Visit says what each is.
type Params struct {
	LineRate                 units.Rate
	BaseRTT                  units.Time
	MSS                      units.Bytes
	Target                   units.Time
	Hops                     int
	PerHop                   units.Time
	ScalingRange             units.Time
	ScalingMin, ScalingMax   float64
	Increase                 units.Bytes
	Beta, MaxMDF             float64
	MinWindow                float64
	InitialWindow, MaxWindow units.Bytes
	RetxReset                int
}

// Defaults that channels of PrioPlus are planned with, too: how much a Swift flow swings a
// queue's delay follows from them.
const (
	DefaultBeta   = 0.8
	DefaultMaxMDF = 0.5
)

// DefaultIncrease is the additive increase per round trip for a bandwidth-delay product: a
// thousandth of it, which PrioPlus' §6 recommends (0.75 KB is "approximately five times the
// recommended value" there, with 150 KB).
func DefaultIncrease(bdp units.Bytes) units.Bytes { return max(bdp/1000, 1) }

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.Above(0), "round trip of an empty path; default the flow's own")
	bdp := p.LineRate.In(p.BaseRTT)
	var above units.Time
	param.Of(s, "target_above", &above, f.Stretch(25*units.Microsecond), param.AtLeast(0), "what the target is above base_rtt where it is not given")
	param.Of(s, "target", &p.Target, p.BaseRTT+above, param.Above(p.BaseRTT), "base target delay (§3.2), a round trip; default base_rtt + target_above")
	param.Of(s, "hops", &p.Hops, f.Hops, param.AtLeast(0), "links on the path, for topology-based scaling of the target (§3.5); default the flow's")
	param.Of(s, "per_hop", &p.PerHop, 0, param.AtLeast(0), "ħ, what the target grows by for each hop")
	param.Of(s, "scaling_range", &p.ScalingRange, 0, param.AtLeast(0), "fs_range of flow-based scaling (§3.5): what is added to the target of a flow whose window is scaling_min or less; 0s turns it off, the paper has some four times the base target")
	param.Of(s, "scaling_min", &p.ScalingMin, 0.1, param.Above(0.0), "fs_min_cwnd in packets")
	param.Of(s, "scaling_max", &p.ScalingMax, 100, param.Above(p.ScalingMin), "fs_max_cwnd in packets")
	param.Of(s, "increase", &p.Increase, DefaultIncrease(bdp), param.Above(0), "ai, what the window grows by in a round trip below the target; default bandwidth-delay product / 1000")
	param.Of(s, "beta", &p.Beta, DefaultBeta, param.AboveTo(0, 1), "β of the decrease")
	param.Of(s, "max_mdf", &p.MaxMDF, DefaultMaxMDF, param.Between(0, 1), "the largest part of the window that one decrease takes")
	param.Of(s, "min_window", &p.MinWindow, max(float64(p.MSS)/100, 1), param.AtLeast(1), "least window in bytes; default a hundredth of a packet")
	param.Of(s, "max_window", &p.MaxWindow, 0, param.AtLeast(0), "bound of the window; 0B for none")
	param.Of(s, "initial_window", &p.InitialWindow, p.start(bdp), param.Above(0), "window of a flow that starts; default one bandwidth-delay product, at least a packet and at most max_window")
	param.Of(s, "retx_reset", &p.RetxReset, 5, param.AtLeast(1), "losses in a row without progress that reset the window to its least (RETX_RESET_THRESHOLD)")
	switch {
	case s.Has("target") && s.Has("target_above"):
		s.Fault("target_above", above, "want it or target, not both")
	case p.MaxWindow > 0 && float64(p.MaxWindow) < p.MinWindow:
		s.Fault("max_window", p.MaxWindow, "want at least min_window, %v B, or 0B for no bound", p.MinWindow)
	case p.MaxWindow > 0 && p.InitialWindow > p.MaxWindow:
		s.Fault("initial_window", p.InitialWindow, "want at most max_window, %v", p.MaxWindow)
	}
}

func (p *Params) start(bdp units.Bytes) units.Bytes {
	w := max(bdp, p.MSS)
	if p.MaxWindow > 0 {
		w = min(w, p.MaxWindow)
	}
	return w
}
