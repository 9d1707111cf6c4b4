package priority

import (
	"cmp"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// Config is the section prioplus: it divides the delays of one queue into channels, one for each
// virtual priority. Without the section there are no virtual priorities.
type Config struct {
	// BaseRTT is the round-trip time of an empty path at line rate, 1 ns … 1 s; if paths differ, that of the
	// longest. Required; 0 if there is no section.
	BaseRTT units.Time
	// Noise is B, the noise of a delay at line rate, 0 … 1 s; default 0.8 µs, the 99.85th
	// percentile of the paper's testbed.
	Noise units.Time
	// Flows is the number of Swift flows of one priority that may share a link: channels are wide enough for it,
	// above 0 and at most 1 000 000; default 150. Fluctuation follows from it.
	Flows float64
	// Fluctuation is A, the fluctuation of the delay at line rate, 1 ns … 1 s. It replaces Flows.
	Fluctuation units.Time
	// Increase is Swift's additive increase W_AI, 1 B … 4 GB; default as in hosts' Swift (swift.DefaultIncrease)
	// and in the paper: a thousandth of the bandwidth-delay product.
	Increase units.Bytes
	// Beta and MaxMDF are Swift's β, above 0 and at most 1, and max_mdf, above 0 and below 1;
	// default 0.8 and 0.5.
	Beta, MaxMDF float64
	// Priorities is how many virtual priorities there are, 1 … 65 536; default 8.
	Priorities int
	// Longest bounds the highest priority's limit at line rate, 1 ns … 1 s. It may be the delay from which packets
	// are marked or dropped. 0, the default, is no bound.
	Longest units.Time
}

// defaultFlows is the number of flows for which the paper sizes its channels (§6).
const defaultFlows = 150

// Section returns the section of the configuration.
func Section() config.Section { return config.Section{Key: "prioplus", Read: read, Check: check} }

// FromConfig returns the section of a configuration.
func FromConfig(c *config.Config) Config { return config.SectionOf[Config](c, "prioplus") }

func read(m *yamlnode.Map, c *config.Config) any {
	if !c.Given("prioplus") {
		return Config{}
	}
	m.Need("base_rtt")
	if m.Has("fluctuation") {
		for _, key := range []string{"flows", "increase", "beta", "max_mdf"} {
			if m.Has(key) {
				m.Fault(key, "stands beside fluctuation, want one of them: the fluctuation follows from %s", key)
			}
		}
	}
	p := Config{
		BaseRTT: m.Time("base_rtt", 0, units.Nanosecond, units.Second), Noise: m.Time("noise", 800*units.Nanosecond, 0, units.Second),
		Flows: m.Above("flows", 0, 0, 1e6), Fluctuation: m.Time("fluctuation", 0, units.Nanosecond, units.Second),
		Increase: m.Bytes("increase", 0, 1, ids.Unlimited), Beta: m.Above("beta", 0, 0, 1), MaxMDF: m.Between("max_mdf", 0, 0, 1),
		Priorities: m.Int("priorities", 8, 1, channel.MaxPriority), Longest: m.Time("longest", 0, units.Nanosecond, units.Second),
	}
	if p.BaseRTT == 0 || p.Fluctuation != 0 {
		return p
	}
	p.Flows, p.Beta, p.MaxMDF = cmp.Or(p.Flows, defaultFlows), cmp.Or(p.Beta, swift.DefaultBeta), cmp.Or(p.MaxMDF, swift.DefaultMaxMDF)
	if p.Increase == 0 && c.Fits(p.BaseRTT) {
		p.Increase = swift.DefaultIncrease(slowestHost(c).BytesIn(c.Scaled(p.BaseRTT)))
	}
	return p
}

// slowestHost returns the rate of the slowest host's link, where one additive increase changes the delay most.
func slowestHost(c *config.Config) units.Rate {
	slowest, _ := c.HostRates()
	return slowest
}

// Plan is how a fabric divides the delays of a queue. Times are the fabric's own.
type Plan struct {
	channel.Plan
	Priorities int     // there are priorities 1 to Priorities, larger is higher
	Flows      float64 // Swift flows of a priority from which Fluctuation was computed; 0 when Fluctuation was configured
}

// PlanOf returns how a fabric divides delays, in its own time; nil when the configuration has no
// section prioplus.
func PlanOf(c *config.Config) *Plan {
	if FromConfig(c).BaseRTT == 0 {
		return nil
	}
	plan, err := newPlan(c)
	if err != nil {
		return nil // cannot happen: the configuration was checked
	}
	return plan
}

func newPlan(c *config.Config) (*Plan, error) {
	p := FromConfig(c)
	plan := &Plan{
		Plan:       channel.Plan{Base: c.Scaled(p.BaseRTT), Fluctuation: c.Scaled(p.Fluctuation), Noise: c.Scaled(p.Noise)},
		Priorities: p.Priorities, Flows: p.Flows,
	}
	if p.Fluctuation == 0 {
		if err := plan.fluctuate(c); err != nil {
			return nil, err
		}
	}
	return plan, plan.Check()
}

// fluctuate computes A for the plan's flows. A decrease is deeper for a higher target, and the target of the highest
// priority itself depends on A. So A is iterated: it grows from step to step, at most to the rise plus β times the
// rise.
func (plan *Plan) fluctuate(c *config.Config) error {
	p := FromConfig(c)
	s := channel.Swift{Flows: p.Flows, Increase: p.Increase, Rate: slowestHost(c), Target: plan.Base, Beta: p.Beta, MaxMDF: p.MaxMDF}
	for range 100 {
		a, err := s.Fluctuation()
		if err != nil {
			return err
		}
		if a == plan.Fluctuation {
			break
		}
		plan.Fluctuation = a
		s.Target = plan.Base + units.Time(plan.Priorities)*plan.Width()
	}
	return nil
}

// HostParameters implements feature.Shared.
func (*Registry) HostParameters(c *config.Config) []*pb.HostParameter {
	plan := PlanOf(c)
	if plan == nil {
		return nil
	}
	return []*pb.HostParameter{{Law: "prioplus", Name: "base-rtt", Value: plan.Base.String()}}
}

// check is config.Section.Check: it compares the section with the scale and the bound on delays.
func check(c *config.Config, d *yamlnode.Doc) {
	p := FromConfig(c)
	if p.BaseRTT == 0 {
		return
	}
	for _, t := range []struct {
		key  string
		time units.Time
	}{{"base_rtt", p.BaseRTT}, {"noise", p.Noise}, {"fluctuation", p.Fluctuation}, {"longest", p.Longest}} {
		if !c.Fits(t.time) || t.key != "longest" && c.Scaled(t.time) > units.Second {
			d.Fault("prioplus."+t.key, "is %v, which is too long when multiplied by scale %d: want at most 1s then", t.time, c.Scale)
			return
		}
	}
	plan, err := newPlan(c)
	if err != nil {
		d.Fault("prioplus", "gives no channels: %v", err)
		return
	}
	highest, err := plan.Channel(plan.Priorities)
	if err != nil {
		d.Fault("prioplus.priorities", "is %d: %v", p.Priorities, err)
		return
	}
	if longest := c.Scaled(p.Longest); longest > 0 && highest.Limit > longest {
		d.Fault("prioplus.priorities", "is %d, want at most %d: the highest limit is base %v + %d · (fluctuation %v + noise %v) + fluctuation/2 + noise = %v, beyond longest, which is %v in this fabric",
			p.Priorities, plan.Plan.Priorities(longest), plan.Base, p.Priorities, plan.Fluctuation, plan.Noise, highest.Limit, longest)
	}
}
