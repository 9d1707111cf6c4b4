package powertcp

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; Visit says what each is.
type Params struct {
	LineRate units.Rate
	BaseRTT  units.Time
	MSS      units.Bytes
	Gamma    float64
	Flows    int
	Increase units.Bytes
	// Theta selects θ-PowerTCP (§3.5): no telemetry, the power from the round trip and its
	// gradient, one update per round trip.
	Theta bool
}

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.AtLeast(param.PacketTime(p.LineRate, p.MSS)), "τ, the longest base round trip (§3.3); default the flow's own")
	param.Of(s, "gamma", &p.Gamma, 0.9, param.AboveTo(0, 1), "γ of the window's moving average (§3.3)")
	param.Of(s, "flows", &p.Flows, 100, param.AtLeast(1), "N of the default increase, how many flows a host is expected to send at a time")
	param.Of(s, "increase", &p.Increase, max(p.LineRate.In(p.BaseRTT)/units.Bytes(max(p.Flows, 1)), 1), param.Above(0), "β, added to the window once per update; default line rate · τ / N (§3.3)")
}

// VisitTheta visits the parameters of θ-PowerTCP.
func (p *Params) VisitTheta(s *param.Set, f *law.Flow) {
	p.Visit(s, f)
	p.Theta = true
}
