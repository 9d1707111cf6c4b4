package registry

import (
	"cmp"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/units"
)

type open struct {
	window units.Bytes
	bdp    float64
	rate   units.Rate
}

func (p *open) visit(s *param.Set, _ *law.Flow) {
	param.Of(s, "window", &p.window, 0, param.AtLeast(0), "bytes in flight; 0B for no bound")
	param.Of(s, "window_bdp", &p.bdp, 0, param.From(0, 1000), "the same as a multiple of the bandwidth-delay product, at least a packet; 0 for no bound")
	param.Of(s, "rate", &p.rate, 0, param.AtLeast(units.Rate(0)), "payload at most, as a NIC's limit; 0bps for the link's rate")
	if p.window > 0 && p.bdp > 0 {
		s.Fault("window_bdp", p.bdp, "want it or window, not both")
	}
}

func (p *open) law(f *law.Flow) (none.Law, error) {
	w := p.window
	if p.bdp > 0 {
		w = max(units.Bytes(p.bdp*float64(f.BDP())), f.MSS)
	}
	return none.New(cmp.Or(p.rate, 2*f.Rate), w) // the NIC itself holds the flow to the link's rate
}

// above is what PrioPlus adds to the law underneath.
type above struct {
	prioplus.Params
	increase float64
}

func (p *above) visit(s *param.Set, f *law.Flow) {
	p.Visit(s, f)
	param.Of(s, "increase_bdp", &p.increase, 0, param.From(0, 1), "additive increase underneath in parts of the bandwidth-delay product; 0 leaves it to under.increase or under.gain")
	for _, name := range []string{"under.increase", "under.gain"} {
		if p.increase > 0 && s.Has(name) {
			s.Fault("increase_bdp", p.increase, "want it or %s, not both", name)
		}
	}
}

// What PrioPlus decides of the law underneath: the delays of its channel, without scaling, and
// with LEDBAT how small a window may be.
var (
	ofSwift  = []string{"base_rtt", "target", "target_above", "hops", "per_hop", "scaling_range", "scaling_min", "scaling_max"}
	ofLEDBAT = []string{"target", "base_delay", "base_history", "base_interval", "min_window"}
)

// withoutChannel is the flow as the law underneath sees it: PrioPlus sets its target.
func withoutChannel(f *law.Flow) *law.Flow {
	g := *f
	g.OneWay, g.Hops = max(g.OneWay, 1), 0 // PrioPlus says what the base delay is
	return &g
}

// over describes PrioPlus over a law whose parameters are a U. step sets the law's additive increase to a part of the
// bandwidth-delay product.
func over[U any, L prioplus.DelayLaw](visit func(*U, *param.Set, *law.Flow), create func(U) (L, error), decided []string, step func(u *U, part float64, f *law.Flow)) func() instance {
	type both struct {
		above
		under U
	}
	return kind(func(p *both, s *param.Set, f *law.Flow) {
		p.above.visit(s, f)
		s.Under("under.", func(s *param.Set) { visit(&p.under, s, withoutChannel(f)) }, decided...)
		if p.increase > 0 && s.Fills() {
			step(&p.under, p.increase, f)
		}
	}, func(p both, _ *law.Flow) (*prioplus.Law, error) {
		under, err := create(p.under)
		if err != nil {
			return nil, err
		}
		return prioplus.New(under, p.Params)
	})
}
