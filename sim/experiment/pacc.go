package experiment

import (
	"math"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

// decodePACC reads "pacc: {class: 0, …}": switches that send CNPs. Keys left out follow from
// each port's rate by the paper's rules, the weights scaled with it. Weights that the
// analyses find unstable are taken: finding out is what a simulator is for.
func decodePACC(m *yamlnode.Map, c *sim.Config) {
	class := uint8(m.Int("class", 0, 0, sim.NumClasses-1))
	interval := m.Time("interval", cnpgen.PaperInterval, units.Microsecond, units.Second)
	var sets []func(*cnpgen.Params) // of the keys that are there
	set := func(key string, set func(*cnpgen.Params)) {
		if m.Has(key) {
			sets = append(sets, set)
		}
	}
	v := cnpgen.Params{
		Beta1: m.Float("beta1", 0, 0, 1e6), Beta2: m.Float("beta2", 0, 0, 1e6),
		Threshold: m.Bytes("threshold", 0, 0, maxBytes), Burst: m.Bytes("burst", 0, 0, maxBytes),
		FilterWeight: m.Float("filter_weight", 0, 0, 1), CNPGap: m.Time("cnp_gap", 0, 0, units.Second),
		MaxFlows: m.Int("max_flows", 0, 0, 1<<22), Carry: m.Bool("carry", false),
	}
	set("beta1", func(p *cnpgen.Params) { p.Beta1 = v.Beta1 })
	set("beta2", func(p *cnpgen.Params) { p.Beta2 = v.Beta2 })
	set("threshold", func(p *cnpgen.Params) { p.Threshold = v.Threshold })
	set("burst", func(p *cnpgen.Params) { p.Burst = v.Burst })
	set("filter_weight", func(p *cnpgen.Params) { p.FilterWeight = v.FilterWeight })
	set("cnp_gap", func(p *cnpgen.Params) { p.CNPGap = v.CNPGap })
	set("max_flows", func(p *cnpgen.Params) { p.MaxFlows = v.MaxFlows })
	set("carry", func(p *cnpgen.Params) { p.Carry = v.Carry })
	params := func(rate units.Rate) cnpgen.Params {
		p := cnpgen.ParamsFor(rate, interval)
		for _, set := range sets {
			set(&p)
		}
		return p
	}
	if c.Graph != nil {
		tried := map[units.Rate]bool{}
		for _, l := range c.Graph.Links {
			if tried[l.Rate] {
				continue
			}
			tried[l.Rate] = true
			if err := params(l.Rate).Validate(l.Rate); err != nil {
				m.Fault("", "at %v: %v", l.Rate, err)
				return
			}
		}
	}
	c.PACC = &sim.PACC{Class: class, Params: params}
}

// phaseMargin is that of PACC at a port by the paper's analysis, with NICs' DCQCN at the hosts; NaN
// where switches send no CNPs.
func phaseMargin(r *run, _ int, me *Measure) float64 {
	pacc, ref := r.plan.Config.PACC, r.plan.ports[me.port]
	link, ok := r.plan.Graph.LinkBetween(ref.from, ref.to)
	if pacc == nil || !ok {
		return math.NaN()
	}
	rate := r.plan.Graph.Links[link].Rate
	return pacc.Params(rate).PhaseMargin(rate, cnpgen.VendorReaction()).Phase
}
