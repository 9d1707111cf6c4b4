package standalone

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/dctcp"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/hosts/law/powertcp"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/hosts/law/timely"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// flowLaw makes the law of a flow.
type flowLaw func(spec agent.FlowSpec) (law.Law, error)

// kind is a law that --law can name.
type kind struct {
	about    string
	needsRTT bool     // takes --base-rtt
	channels bool     // is PrioPlus
	names    []string // of its parameters, in order
	types    map[string]string
	make     func(o *Options, set params) (flowLaw, error)
}

// lawOf describes a law whose parameters are a struct. fill gives those of owned, and what
// differs from the law's own defaults; --param comes on top of the latter.
func lawOf[P any, L law.Law](about string, owned []string, fill func(*P, *Options, agent.FlowSpec), create func(P, *Options, agent.FlowSpec) (L, error)) kind {
	k := kind{about: about}
	k.names, k.types = fields(reflect.TypeFor[P](), owned)
	k.make = func(o *Options, values params) (flowLaw, error) {
		var given P
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if err := set(reflect.ValueOf(&given).Elem(), name, values[name]); err != nil {
				return nil, err
			}
		}
		return func(spec agent.FlowSpec) (law.Law, error) {
			var p P
			fill(&p, o, spec)
			to := reflect.ValueOf(&p).Elem()
			for name, value := range values {
				if err := set(to, name, value); err != nil {
					return nil, err
				}
			}
			return create(p, o, spec)
		}, nil
	}
	return k
}

// only adapts a constructor that wants nothing but its parameters.
func only[P any, L law.Law](create func(P) (L, error)) func(P, *Options, agent.FlowSpec) (L, error) {
	return func(p P, _ *Options, _ agent.FlowSpec) (L, error) { return create(p) }
}

func (k kind) rtt() kind { k.needsRTT = true; return k }

// laws are the congestion laws by name. HPCC and PowerTCP's other half want telemetry of
// every hop, which frames on the wire do not carry here; `headgate sim` has them.
func laws() map[string]kind {
	all := map[string]kind{
		"soze": lawOf("Söze: rates by weight from maxQD (NSDI 2025)", []string{"P", "K", "Alpha", "Beta", "M", "MaxRate", "MSS"},
			func(p *soze.Params, o *Options, _ agent.FlowSpec) { *p = o.Soze },
			func(p soze.Params, _ *Options, f agent.FlowSpec) (*soze.Law, error) { return soze.New(p, f.Weight) }),
		"none": lawOf("the link's rate", nil,
			func(*struct{ Window units.Bytes }, *Options, agent.FlowSpec) {},
			func(p struct{ Window units.Bytes }, o *Options, _ agent.FlowSpec) (none.Law, error) {
				return none.New(o.Rate, p.Window)
			}),
		"dcqcn": lawOf("DCQCN (SIGCOMM 2015); the receiver needs --cnp-gap", []string{"LineRate"},
			func(p *dcqcn.Params, o *Options, _ agent.FlowSpec) {
				p.LineRate = o.payloadRate()
				p.AlphaTimer, p.IncreaseTimer = o.scaled(55*units.Microsecond), o.scaled(55*units.Microsecond)
			}, only(dcqcn.New)),
		"dcqcn-vendor": lawOf("DCQCN as NICs have it; the receiver needs --cnp-gap", []string{"LineRate"},
			func(p *dcqcn.Params, o *Options, _ agent.FlowSpec) {
				*p = dcqcn.Vendor(o.payloadRate())
				p.AlphaTimer, p.IncreaseTimer, p.CutInterval = o.scaled(p.AlphaTimer), o.scaled(p.IncreaseTimer), o.scaled(p.CutInterval)
			}, only(dcqcn.New)),
		"dctcp": lawOf("DCTCP (SIGCOMM 2010, RFC 8257)", []string{"LineRate", "MSS", "Size", "Deadline", "MinUrgency", "MaxUrgency"},
			fillDCTCP, only(dctcp.New)),
		"d2tcp": lawOf("D2TCP (SIGCOMM 2012); flows with size= and deadline=", []string{"LineRate", "MSS", "Size", "Deadline"},
			func(p *dctcp.Params, o *Options, f agent.FlowSpec) {
				fillDCTCP(p, o, f)
				p.Deadline = f.Deadline
			}, only(dctcp.New)),
		"timely": lawOf("TIMELY (SIGCOMM 2015)", []string{"LineRate", "MinRTT"},
			func(p *timely.Params, o *Options, _ agent.FlowSpec) {
				p.LineRate, p.MinRTT = o.payloadRate(), o.BaseRTT
				p.LowRTT, p.HighRTT = o.BaseRTT+o.scaled(30*units.Microsecond), o.BaseRTT+o.scaled(480*units.Microsecond)
			}, only(timely.New)).rtt(),
		"swift": lawOf("Swift (SIGCOMM 2020)", []string{"LineRate", "BaseRTT", "MSS"}, fillSwift, only(swift.New)).rtt(),
		"ledbat": lawOf("LEDBAT (RFC 6817), by round trips", []string{"LineRate", "MSS", "BaseDelay"},
			func(p *ledbat.Params, o *Options, _ agent.FlowSpec) {
				fillLEDBAT(p, o)
				p.BaseDelay = o.BaseRTT
			}, only(ledbat.New)),
		"theta-powertcp": lawOf("PowerTCP without telemetry (NSDI 2022, §3.5)", []string{"LineRate", "BaseRTT", "MSS", "Theta"},
			func(p *powertcp.Params, o *Options, _ agent.FlowSpec) {
				p.LineRate, p.BaseRTT, p.MSS, p.Theta = o.payloadRate(), o.BaseRTT, o.MSS, true
			}, only(powertcp.New)).rtt(),
		"prioplus-swift": prioPlus("PrioPlus over Swift (EuroSys 2025); see --priority", fillSwift,
			func(p swift.Params) (prioplus.DelayLaw, error) { return swift.New(p) }),
		"prioplus-ledbat": prioPlus("PrioPlus over LEDBAT; see --priority", func(p *ledbat.Params, o *Options, _ agent.FlowSpec) { fillLEDBAT(p, o) },
			func(p ledbat.Params) (prioplus.DelayLaw, error) { return ledbat.New(p) }),
	}
	all["prioplus"] = all["prioplus-swift"]
	return all
}

func fillDCTCP(p *dctcp.Params, o *Options, f agent.FlowSpec) {
	p.LineRate, p.MSS, p.Size = o.payloadRate(), o.MSS, f.Size
}

func fillSwift(p *swift.Params, o *Options, _ agent.FlowSpec) {
	p.LineRate, p.BaseRTT, p.MSS = o.payloadRate(), o.BaseRTT, o.MSS
	p.Target = o.BaseRTT + o.scaled(25*units.Microsecond)
}

func fillLEDBAT(p *ledbat.Params, o *Options) {
	p.LineRate, p.MSS = o.payloadRate(), o.MSS
	p.Target = min(o.scaled(25*units.Microsecond), 100*units.Millisecond) // the RFC's bound
}

// prioPlus describes PrioPlus over a law, whose parameters are under.NAME beside PrioPlus'
// own.
func prioPlus[P any](about string, fill func(*P, *Options, agent.FlowSpec), create func(P) (prioplus.DelayLaw, error)) kind {
	under := lawOf(about, []string{"LineRate", "BaseRTT", "MSS", "Target", "BaseDelay"}, fill,
		func(p P, _ *Options, _ agent.FlowSpec) (prioplus.DelayLaw, error) { return create(p) })
	// Rand is no parameter, Level is --level.
	own, types := fields(reflect.TypeFor[prioplus.Params](), []string{"LineRate", "BaseRTT", "OneWay", "MSS", "Target", "Limit"})
	k := kind{about: about, needsRTT: true, channels: true, names: slices.Clone(own), types: maps.Clone(types)}
	for _, name := range under.names {
		k.names = append(k.names, "under."+name)
		k.types["under."+name] = under.types[name]
	}
	k.make = func(o *Options, values params) (flowLaw, error) {
		ours, theirs := params{}, params{}
		for name, value := range values {
			if rest, ok := strings.CutPrefix(name, "under."); ok {
				theirs[rest] = value
			} else {
				ours[name] = value
			}
		}
		makeUnder, err := under.make(o, theirs)
		if err != nil {
			return nil, err
		}
		base := prioplus.Params{
			LineRate: o.payloadRate(), BaseRTT: o.BaseRTT, MSS: o.MSS, Level: levels()[o.Level],
			Tolerance: o.scaled(units.Microsecond), Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		}
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			if err := set(reflect.ValueOf(&base).Elem(), name, ours[name]); err != nil {
				return nil, err
			}
		}
		return func(spec agent.FlowSpec) (law.Law, error) {
			p := base
			p.Target, p.Limit = spec.Channel.Target, spec.Channel.Limit
			u, err := makeUnder(spec)
			if err != nil {
				return nil, err
			}
			return prioplus.New(u.(prioplus.DelayLaw), p)
		}, nil
	}
	return k
}

func levels() map[string]prioplus.Level {
	return map[string]prioplus.Level{"low": prioplus.Low, "middle": prioplus.Middle, "high": prioplus.High}
}

// flowLaw returns what makes the flows' laws, or what is wrong with --law and --param.
func (o *Options) flowLaw() (flowLaw, error) {
	all := laws()
	k, ok := all[o.Law]
	if !ok {
		return nil, fmt.Errorf("--law %q: want %s", o.Law, oneOf(slices.Sorted(maps.Keys(all))))
	}
	values, err := parseParams(o.Params)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := k.types[name]; ok {
			continue
		}
		if len(k.names) == 0 {
			return nil, fmt.Errorf("--param %s=%s: --law %s has no parameters", name, values[name], o.Law)
		}
		return nil, fmt.Errorf("--param %s=%s: of --law %s want %s", name, values[name], o.Law, oneOf(k.names))
	}
	if k.needsRTT && o.BaseRTT <= 0 {
		return nil, fmt.Errorf("--base-rtt %v: --law %s wants the round trip of an empty path, more than 0", o.BaseRTT, o.Law)
	}
	if err := o.checkChannels(k); err != nil {
		return nil, err
	}
	return k.make(o, values)
}

// payloadRate is how fast full packets carry payload over the link.
func (o *Options) payloadRate() units.Rate {
	return units.Rate(float64(o.Rate) * float64(o.MSS) / float64(o.MSS+packet.DataOverhead))
}

// scaled stretches one of the papers' times.
func (o *Options) scaled(t units.Time) units.Time { return units.Time(float64(t) * o.Scale) }

// oneOf lists names for an error.
func oneOf(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return names[0]
}

// LawsHelp describes the laws and their parameters.
func LawsHelp() string {
	var b strings.Builder
	all := laws()
	b.WriteString("Laws of --law and their parameters for --param, named as in files of `headgate sim`:\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "prioplus" {
			b.WriteString("  prioplus: short for prioplus-swift\n")
			continue
		}
		k := all[name]
		fmt.Fprintf(&b, "  %s: %s\n", name, k.about)
		for _, p := range k.names {
			fmt.Fprintf(&b, "      %s=%s\n", p, strings.ToUpper(k.types[p]))
		}
	}
	return b.String()
}
