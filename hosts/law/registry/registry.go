// Package registry lists the congestion laws by name, each with its description, the signals that it needs, its
// parameters and its constructor. `headgate host`, the simulator's experiments and the help take laws from
// here. A new law is one more line in Kinds.
package registry

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/aimd"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/dctcp"
	"github.com/headgate/headgate/hosts/law/hpcc"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/powertcp"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/hosts/law/timely"
	"github.com/headgate/headgate/units"
)

// Needs are the signals that a law needs besides acknowledgements.
type Needs struct {
	INT      bool // telemetry of every hop in acknowledgements
	MaxQD    bool // the largest queueing delay of the hops in acknowledgements
	BaseRTT  bool // the round trip of an empty path
	Channel  bool // a channel of PrioPlus
	Deadline bool // a size and a deadline
	Delay    bool // one-way delays, if they are measured
}

// Kind is a law that can be selected by name.
type Kind struct {
	Name, About string
	Needs       Needs
	make        func() instance
}

// instance is one set of parameters, as a visitor, and the law they make.
type instance struct {
	visit  func(s *param.Set, f *law.Flow)
	create func(f *law.Flow) (law.Law, error)
}

// Maker makes laws of one kind with one set of parameters. It may be used by several
// goroutines.
type Maker struct {
	Kind *Kind
	set  *param.Set
}

// Kinds are the laws, by name.
var Kinds = []Kind{
	{"aimd", "AIMD on the queueing delay (Söze's comparison, NSDI 2025, §5.3.1)", Needs{MaxQD: true},
		kind((*aimd.Params).Visit, plain(aimd.New))},
	{"d2tcp", "D2TCP (SIGCOMM 2012); flows with a size and a deadline", Needs{Deadline: true},
		kind((*dctcp.Params).VisitD2TCP, plain(dctcp.New))},
	{"dcqcn", "DCQCN (SIGCOMM 2015); receivers send CNPs", Needs{},
		kind((*dcqcn.Params).Visit, plain(dcqcn.New))},
	{"dcqcn-ns3", "DCQCN as the public HPCC simulator has it (run.py --cc dcqcn)", Needs{},
		kind((*dcqcn.Params).VisitNS3, plain(dcqcn.New))},
	{"dcqcn-ns3-paper", "DCQCN as the public HPCC simulator has it with the timers of DCQCN's paper (run.py --cc dcqcn_paper)", Needs{},
		kind((*dcqcn.Params).VisitNS3Paper, plain(dcqcn.New))},
	{"dcqcn-vendor", "DCQCN as NICs have it; receivers send CNPs", Needs{},
		kind((*dcqcn.Params).VisitVendor, plain(dcqcn.New))},
	{"dctcp", "DCTCP (SIGCOMM 2010, RFC 8257)", Needs{},
		kind((*dctcp.Params).Visit, plain(dctcp.New))},
	{"hpcc", "HPCC (SIGCOMM 2019)", Needs{INT: true, BaseRTT: true},
		kind((*hpcc.Params).Visit, plain(hpcc.New))},
	{"hpcc-ns3", "HPCC as its public simulator has it (run.py --cc hp)", Needs{INT: true, BaseRTT: true},
		kind((*hpcc.Params).VisitNS3, plain(hpcc.New))},
	{"ledbat", "LEDBAT (RFC 6817)", Needs{Delay: true},
		kind((*ledbat.Params).Visit, plain(ledbat.New))},
	{"none", "the link's rate", Needs{},
		kind((*open).visit, func(p open, f *law.Flow) (none.Law, error) { return p.law(f) })},
	{"powertcp", "PowerTCP (NSDI 2022)", Needs{INT: true, BaseRTT: true},
		kind((*powertcp.Params).Visit, plain(powertcp.New))},
	{"prioplus-ledbat", "PrioPlus (EuroSys 2025) over LEDBAT, whose parameters are under.NAME", Needs{BaseRTT: true, Channel: true},
		over((*ledbat.Params).Visit, ledbat.New, ofLEDBAT, func(u *ledbat.Params, part float64, f *law.Flow) { u.Gain = part * float64(f.BDP()) / float64(f.MSS) })},
	{"prioplus-swift", "PrioPlus (EuroSys 2025) over Swift, whose parameters are under.NAME", Needs{BaseRTT: true, Channel: true},
		over((*swift.Params).Visit, swift.New, ofSwift, func(u *swift.Params, part float64, f *law.Flow) {
			u.Increase = max(units.Bytes(part*float64(f.BDP())), 1)
		})},
	{"soze", "Söze (NSDI 2025): rates by weight from maxQD", Needs{MaxQD: true},
		kind((*soze.Params).Visit, func(p soze.Params, f *law.Flow) (*soze.Law, error) { return soze.New(p, f.Weight) })},
	{"swift", "Swift (SIGCOMM 2020)", Needs{BaseRTT: true},
		kind((*swift.Params).Visit, plain(swift.New))},
	{"theta-powertcp", "PowerTCP without telemetry (NSDI 2022, §3.5)", Needs{BaseRTT: true},
		kind((*powertcp.Params).VisitTheta, plain(powertcp.New))},
	{"timely", "TIMELY (SIGCOMM 2015)", Needs{BaseRTT: true},
		kind((*timely.Params).Visit, plain(timely.New))},
	{"timely-ns3", "TIMELY as the public HPCC simulator has it (run.py --cc timely)", Needs{},
		kind((*timely.Params).VisitNS3, plain(timely.New))},
}

// kind describes a law with parameters of type P.
func kind[P any, L law.Law](visit func(*P, *param.Set, *law.Flow), create func(P, *law.Flow) (L, error)) func() instance {
	return func() instance {
		p := new(P)
		return instance{
			visit:  func(s *param.Set, f *law.Flow) { visit(p, s, f) },
			create: func(f *law.Flow) (law.Law, error) { return create(*p, f) },
		}
	}
}

// plain adapts a constructor that takes only parameters.
func plain[P any, L law.Law](create func(P) (L, error)) func(P, *law.Flow) (L, error) {
	return func(p P, _ *law.Flow) (L, error) { return create(p) }
}

// Find returns the kind of a name, nil when there is none.
func Find(name string) *Kind {
	for i := range Kinds {
		if Kinds[i].Name == name {
			return &Kinds[i]
		}
	}
	return nil
}

// Names lists the kinds' names.
func Names() []string {
	names := make([]string, len(Kinds))
	for i := range Kinds {
		names[i] = Kinds[i].Name
	}
	return names
}

// samples are two flows that differ in all that defaults depend on.
var samples = [2]law.Flow{
	{Rate: 100 * units.Gbps, BaseRTT: 12 * units.Microsecond, OneWay: 6 * units.Microsecond, MSS: 1000, Hops: 4, Weight: 1},
	{Rate: 25 * units.Gbps, BaseRTT: 80 * units.Microsecond, MSS: 1400, Hops: 6, Size: units.MB, Deadline: units.Second, Weight: 2},
}

// Params describes the parameters of a kind. A default or a range that follows from the
// flow's path is left out; the description names its source.
func (k *Kind) Params() []param.Info {
	i := k.make()
	list := param.Describe(func(s *param.Set) { i.visit(s, &samples[0]) })
	for at, other := range param.Describe(func(s *param.Set) { i.visit(s, &samples[1]) }) {
		if list[at].Default != other.Default {
			list[at].Default = ""
		}
		if list[at].Want != other.Want {
			list[at].Want = ""
		}
	}
	return list
}

// Maker returns a Maker with parameters given by name. An unknown name or a value of the wrong kind is a
// *param.Error. NewLaw returns one for a value that the flow's path does not allow. A given value counts even
// if it is 0 or false.
func (k *Kind) Maker(given map[string]string) (*Maker, error) {
	i := k.make()
	set, err := param.Parse(func(s *param.Set) { i.visit(s, &samples[0]) }, given)
	return &Maker{Kind: k, set: set}, err
}

// Needs returns the signals that these laws need besides acknowledgements.
func (m *Maker) Needs() Needs {
	n := m.Kind.Needs
	n.Delay = n.Delay || m.set.Given("one_way") == true
	return n
}

// NewLaw makes the law of a flow.
func (m *Maker) NewLaw(f law.Flow) (law.Law, error) {
	i := m.Kind.make()
	if err := m.set.Fill(func(s *param.Set) { i.visit(s, &f) }); err != nil {
		return nil, err
	}
	return i.create(&f)
}

// Help describes the laws and their parameters.
func Help(kinds []Kind) string {
	var b strings.Builder
	for i := range kinds {
		k := &kinds[i]
		fmt.Fprintf(&b, "  %s: %s\n", k.Name, k.About)
		for _, p := range k.Params() {
			fmt.Fprintf(&b, "      %s=%s: %s", p.Name, strings.ToUpper(p.Kind), p.Doc)
			if p.Want != "" {
				fmt.Fprintf(&b, "; %s", p.Want)
			}
			if p.Default != "" {
				fmt.Fprintf(&b, "; default %s", p.Default)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

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

// above holds the parameters of PrioPlus itself, beside those of the law underneath.
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

// Parameters of the law underneath that PrioPlus sets: the delays of its channel, no target scaling and, for
// LEDBAT, the least window.
var (
	ofSwift  = []string{"base_rtt", "target", "target_above", "hops", "per_hop", "scaling_range", "scaling_min", "scaling_max"}
	ofLEDBAT = []string{"target", "base_delay", "base_history", "base_interval", "min_window"}
)

// withoutChannel is the flow as the law underneath sees it: PrioPlus sets its target.
func withoutChannel(f *law.Flow) *law.Flow {
	g := *f
	g.OneWay, g.Hops = max(g.OneWay, 1), 0 // PrioPlus sets the base delay
	return &g
}

// over describes PrioPlus over a law with parameters of type U. step sets the law's additive increase to a
// fraction of the bandwidth-delay product.
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
