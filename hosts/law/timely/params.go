package timely

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law, the paper's (§6) with increases scaled from its 10 Gb/s
// to LineRate; Visit says what each is.
type Params struct {
	LineRate           units.Rate
	MinRTT             units.Time
	MinRate, StartRate units.Rate
	LowRTT, HighRTT    units.Time
	Alpha, Beta        float64
	Increase           units.Rate
	HyperAfter         int
	HyperFactor        float64
	MaxDecrease        float64
}

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Of(s, "min_rtt", &p.MinRTT, f.BaseRTT, param.Above(0), "what normalises the gradient; default the base round trip, 20us in the paper")
	param.Of(s, "min_rate", &p.MinRate, max(p.LineRate/1000, 1), param.AboveTo(0, p.LineRate), "floor of the rate; default line rate / 1000")
	param.Of(s, "start_rate", &p.StartRate, p.LineRate, param.From(p.MinRate, p.LineRate), "rate of a flow that starts; default the line rate, as RDMA NICs do, where the paper has it over the host's flows")
	param.Of(s, "low_rtt", &p.LowRTT, p.MinRTT+f.Stretch(30*units.Microsecond), param.AtLeast(0), "round trip below which the flow always increases; default min_rtt + 30us, the paper's 50us for its 20us")
	param.Of(s, "high_rtt", &p.HighRTT, p.MinRTT+f.Stretch(480*units.Microsecond), param.Above(p.LowRTT), "round trip above which the flow always decreases; default min_rtt + 480us, the paper's 500us for its 20us")
	param.Of(s, "alpha", &p.Alpha, 0.875, param.AboveTo(0, 1), "α, the weight of a new round trip in the difference's moving average")
	param.Of(s, "beta", &p.Beta, 0.8, param.AboveTo(0, 1), "β, the factor of decrease")
	param.Of(s, "increase", &p.Increase, max(p.LineRate/1000, 1), param.Above(0), "δ; default line rate / 1000, the paper's 10 Mb/s at 10 Gb/s")
	param.Of(s, "hyper_after", &p.HyperAfter, 5, param.AtLeast(1), "N of hyperactive increase: increases in a row by the gradient before a step grows")
	param.Of(s, "hyper_factor", &p.HyperFactor, 5, param.From(1, 1000), "what a step is multiplied by then")
	param.Of(s, "max_decrease", &p.MaxDecrease, 0.5, param.AboveTo(0.0, 1), "the largest part of the rate that one round trip takes, as in the authors' published code; 1 for the paper's Algorithm 1, in which one burst on a short path takes all of it")
}
