package experiment

import (
	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/yamlnode"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/dctcp"
	"github.com/headgate/headgate/hosts/law/hpcc"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/hosts/law/powertcp"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/hosts/law/timely"
	"github.com/headgate/headgate/units"
)

// lawKind reads a law's own keys.
type lawKind func(m *yamlnode.Map) fabric.LawMaker

// lawKinds are the congestion laws that a file can name. A new law is one more line here.
func lawKinds() map[string]lawKind {
	return map[string]lawKind{
		"none": decodeNone,
		"dcqcn": lawOf(fabric.Needs{}, []string{"LineRate"},
			func(p *dcqcn.Params, f fabric.FlowInfo) { p.LineRate = f.Rate }, only(dcqcn.New)),
		// The parameters of NICs, as the public HPCC simulator has them.
		"dcqcn-vendor": lawOf(fabric.Needs{}, []string{"LineRate"},
			func(p *dcqcn.Params, f fabric.FlowInfo) { *p = over(dcqcn.Vendor(f.Rate), *p) }, only(dcqcn.New)),
		"dctcp": lawOf(fabric.Needs{}, []string{"LineRate", "MSS", "Size"},
			func(p *dctcp.Params, f fabric.FlowInfo) { p.LineRate, p.MSS, p.Size = f.Rate, f.MSS, f.Size }, only(dctcp.New)),
		"timely": lawOf(fabric.Needs{}, []string{"LineRate", "MinRTT"},
			func(p *timely.Params, f fabric.FlowInfo) { p.LineRate, p.MinRTT = f.Rate, f.BaseRTT }, only(timely.New)),
		"swift": lawOf(fabric.Needs{}, []string{"LineRate", "MSS", "Hops"}, func(p *swift.Params, f fabric.FlowInfo) {
			p.LineRate, p.MSS, p.Hops = f.Rate, f.MSS, f.Hops
			setDefault(&p.BaseRTT, f.BaseRTT)
		}, only(swift.New)),
		"ledbat": lawOf(fabric.Needs{Delay: true}, []string{"LineRate", "MSS"},
			func(p *ledbat.Params, f fabric.FlowInfo) { p.LineRate, p.MSS = f.Rate, f.MSS }, only(ledbat.New)),
		"hpcc": lawOf(fabric.Needs{INT: true}, []string{"LineRate", "MSS"}, func(p *hpcc.Params, f fabric.FlowInfo) {
			p.LineRate, p.MSS = f.Rate, f.MSS
			setDefault(&p.BaseRTT, f.BaseRTT)
		}, only(hpcc.New)),
		"powertcp": lawOf(fabric.Needs{INT: true}, []string{"LineRate", "MSS"}, func(p *powertcp.Params, f fabric.FlowInfo) {
			p.LineRate, p.MSS = f.Rate, f.MSS
			setDefault(&p.BaseRTT, f.BaseRTT)
		}, only(powertcp.New)),
		"prioplus-swift":  decodePrioPlus(swiftUnder, swift.Params{}, []string{"LineRate", "BaseRTT", "MSS", "Target", "Hops"}),
		"prioplus-ledbat": decodePrioPlus(ledbatUnder, ledbat.Params{}, []string{"LineRate", "MSS", "Target", "BaseDelay"}),
		"soze": lawOf(fabric.Needs{MaxQD: true}, []string{"MaxRate", "MSS"}, fillSoze,
			func(p soze.Params, f fabric.FlowInfo) (*soze.Law, error) { return soze.New(p, f.Weight) }),
	}
}

// only adapts a constructor that wants nothing but its parameters.
func only[P any, L law.Law](make func(P) (L, error)) func(P, fabric.FlowInfo) (L, error) {
	return func(p P, _ fabric.FlowInfo) (L, error) { return make(p) }
}

// fillSoze has the paper's target function for 100 Gb/s where the file is silent.
func fillSoze(p *soze.Params, f fabric.FlowInfo) {
	setDefault(&p.P, 3*units.Microsecond)
	setDefault(&p.K, 37*units.Microsecond)
	setDefault(&p.Alpha, 100*units.Gbps)
	setDefault(&p.Beta, units.Gbps)
	p.MaxRate, p.MSS = f.Rate, f.MSS
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// decodeLaws reads "laws: {name: {kind: …, …}}". A law that is not named there is its kind
// without parameters.
func decodeLaws(root *yamlnode.Map) map[string]fabric.LawMaker {
	kinds := lawKinds()
	var names []string
	for k := range kinds {
		names = append(names, k)
	}
	sorted(names)
	laws := map[string]fabric.LawMaker{}
	empty := yamlnode.Empty()
	for k, read := range kinds {
		laws[k] = read(empty)
	}
	root.Entries("laws", func(name string, m *yamlnode.Map) {
		m.Need("kind")
		if read := kinds[m.OneOf("kind", "", names...)]; read != nil {
			laws[name] = read(m)
			m.Done()
		}
	})
	return laws
}

// maker is a LawMaker from a function.
type maker struct {
	needs fabric.Needs
	make  func(f fabric.FlowInfo) (law.Law, error)
}

// NewLaw implements fabric.LawMaker.
func (m maker) NewLaw(f fabric.FlowInfo) (law.Law, error) { return m.make(f) }

// Needs tells the fabric what the law's packets must carry.
func (m maker) Needs() fabric.Needs { return m.needs }

// decodeNone reads the absence of a law: line rate, bounded by a window if one is given,
// in bytes or as a multiple of the flow's bandwidth-delay product.
func decodeNone(m *yamlnode.Map) fabric.LawMaker {
	window := m.Bytes("window", 0, 0, maxBytes)
	bdp := m.Float("window_bdp", 0, 0, 1000)
	return maker{make: func(f fabric.FlowInfo) (law.Law, error) {
		w := window
		if bdp > 0 {
			w = max(units.Bytes(bdp*float64(f.BDP())), f.MSS)
		}
		// The NIC itself is what holds the flow to line rate.
		return none.New(2*f.Rate, w)
	}}
}
