package hpcc

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
	Eta      float64
	MaxStage int
	Flows    int
	Increase units.Bytes
}

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.AtLeast(param.PacketTime(p.LineRate, p.MSS)), "T, the same for all flows of a fabric: a little more than its longest base round trip (§3.3); default the flow's own")
	param.Of(s, "eta", &p.Eta, 0.95, param.AboveTo(0, 1), "η, the utilisation sought (§3.3)")
	param.Of(s, "max_stage", &p.MaxStage, 5, param.AtLeast(0), "round trips of additive increase before a multiplicative one (§3.3); 0 divides by the utilisation in each, as the public simulator's configuration has it")
	param.Of(s, "flows", &p.Flows, 100, param.AtLeast(1), "N of the default increase, how many flows a link is expected to carry")
	param.Of(s, "increase", &p.Increase, p.step(), param.Above(0), "W_AI; default W_init·(1 − η)/N (§3.3)")
}

func (p *Params) step() units.Bytes {
	return max(units.Bytes(float64(p.LineRate.In(p.BaseRTT))*(1-p.Eta)/float64(max(p.Flows, 1))), 1)
}
