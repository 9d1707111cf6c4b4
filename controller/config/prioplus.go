package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/controller/channels"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

// PrioPlus divides the delays of one queue into channels, one for each virtual priority
// (package controller/channels). Without the section there are no virtual priorities.
type PrioPlus struct {
	// BaseRTT is the round trip of an empty path at line rate, 1 ns … 1 s; the longest one
	// where paths differ. Required; 0 when there is no section.
	BaseRTT units.Time
	// Noise is B, the noise of a delay at line rate, 0 … 1 s; default 0.8 µs, the 99.85th
	// percentile of the paper's testbed.
	Noise units.Time
	// Flows is how many Swift flows of one priority at one link the channels are wide enough
	// for, above 0 and at most 1 000 000; default 150. Fluctuation follows from it.
	Flows float64
	// Fluctuation is A at line rate, 1 ns … 1 s, in place of Flows.
	Fluctuation units.Time
	// Increase is Swift's additive increase W_AI, 1 B … 4 GB; default a thousandth of the
	// bandwidth-delay product, as in the paper.
	Increase units.Bytes
	// Beta and MaxMDF are Swift's β, above 0 and at most 1, and max_mdf, above 0 and below 1;
	// default 0.8 and 0.5.
	Beta, MaxMDF float64
	// Priorities is how many virtual priorities there are, 1 … 65 536; default 8.
	Priorities int
	// Longest bounds the highest priority's limit at line rate, 1 ns … 1 s, such as the delay
	// from which packets are marked or dropped; 0, the default, is no bound.
	Longest units.Time
}

// defaultFlows is for how many flows the paper's channels are wide enough (§6).
const defaultFlows = 150

func readPrioPlus(d *decoder, n *yaml.Node, path string) PrioPlus {
	v := PrioPlus{Noise: -1}
	time := func(to *units.Time, low units.Time) func(n *yaml.Node, p string) {
		return func(n *yaml.Node, p string) { *to = d.time(n, p, low, units.Second) }
	}
	d.object(n, path, []field{
		{"base_rtt", true, time(&v.BaseRTT, units.Nanosecond)},
		{"noise", false, time(&v.Noise, 0)},
		{"flows", false, func(n *yaml.Node, p string) {
			v.Flows = d.float(n, p, func(x float64) bool { return x > 0 && x <= 1e6 }, "a number above 0 and at most 1000000")
		}},
		{"fluctuation", false, time(&v.Fluctuation, units.Nanosecond)},
		{"increase", false, func(n *yaml.Node, p string) { v.Increase = d.bytes(n, p, 1, maxLimit) }},
		{"beta", false, func(n *yaml.Node, p string) {
			v.Beta = d.float(n, p, func(x float64) bool { return x > 0 && x <= 1 }, "a number above 0 and at most 1")
		}},
		{"max_mdf", false, func(n *yaml.Node, p string) {
			v.MaxMDF = d.float(n, p, func(x float64) bool { return x > 0 && x < 1 }, "a number above 0 and below 1")
		}},
		{"priorities", false, func(n *yaml.Node, p string) { v.Priorities = int(d.uint(n, p, 1, channel.MaxPriority)) }},
		{"longest", false, time(&v.Longest, units.Nanosecond)},
	})
	if v.Fluctuation != 0 {
		for _, k := range []struct {
			key   string
			given bool
		}{{"flows", v.Flows != 0}, {"increase", v.Increase != 0}, {"beta", v.Beta != 0}, {"max_mdf", v.MaxMDF != 0}} {
			if k.given {
				d.add(n.Line, join(path, k.key), "stands beside fluctuation, want one of them: the fluctuation follows from %s", k.key)
			}
		}
	}
	return v
}

func (c *Config) prioPlusDefaults(d *decoder) {
	p := &c.PrioPlus
	if _, given := d.lines["prioplus"]; !given {
		return
	}
	if p.Noise < 0 {
		p.Noise = 800 * units.Nanosecond
	}
	set(&p.Priorities, 8)
	if p.Fluctuation != 0 {
		return
	}
	set(&p.Flows, defaultFlows)
	set(&p.Beta, 0.8)
	set(&p.MaxMDF, 0.5)
	if p.Increase == 0 && mulFits(int64(p.BaseRTT), c.Scale) {
		p.Increase = max(c.slowestHost().In(c.Scaled(p.BaseRTT))/1000, 1)
	}
}

// slowestHost is the rate of the slowest host's link: there a step swings the delay most.
func (c *Config) slowestHost() units.Rate {
	least := units.Rate(0)
	for _, l := range c.Links {
		if (l.A.Port == 0 || l.B.Port == 0) && (least == 0 || l.Rate < least) {
			least = l.Rate
		}
	}
	set(&least, units.Gbps) // no host, nothing to prefer
	return least
}

// ChannelPlan returns how this fabric divides delays, in its own time; nil when the
// configuration has no section prioplus.
func (c *Config) ChannelPlan() *channels.Plan {
	if c.PrioPlus.BaseRTT == 0 {
		return nil
	}
	plan, err := c.channelPlan()
	if err != nil {
		return nil // not of a configuration that was found free of faults
	}
	return plan
}

func (c *Config) channelPlan() (*channels.Plan, error) {
	p := c.PrioPlus
	plan := &channels.Plan{
		Plan:       channel.Plan{Base: c.Scaled(p.BaseRTT), Fluctuation: c.Scaled(p.Fluctuation), Noise: c.Scaled(p.Noise)},
		Priorities: p.Priorities, Flows: p.Flows,
	}
	if p.Fluctuation == 0 {
		if err := c.fluctuation(plan); err != nil {
			return nil, err
		}
	}
	return plan, plan.Check()
}

// fluctuation computes A for the plan's flows. A decrease is the deeper the higher the
// target, and the target of the highest priority depends on A in turn: it grows from step to
// step, and not beyond the rise and β times the rise.
func (c *Config) fluctuation(plan *channels.Plan) error {
	p := c.PrioPlus
	s := channel.Swift{Flows: p.Flows, Increase: p.Increase, Rate: c.slowestHost(), Target: plan.Base, Beta: p.Beta, MaxMDF: p.MaxMDF}
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

// checkPrioPlus holds the section against the scale and the bound on delays.
func (c *Config) checkPrioPlus(f *faults) {
	p := c.PrioPlus
	if p.BaseRTT == 0 {
		return
	}
	for _, t := range []struct {
		key  string
		time units.Time
	}{{"base_rtt", p.BaseRTT}, {"noise", p.Noise}, {"fluctuation", p.Fluctuation}, {"longest", p.Longest}} {
		if !mulFits(int64(t.time), c.Scale) || t.key != "longest" && c.Scaled(t.time) > units.Second {
			f.add(c.line("prioplus."+t.key), "prioplus."+t.key, "is %v, which is too long when multiplied by scale %d: want at most 1s then", t.time, c.Scale)
			return
		}
	}
	plan, err := c.channelPlan()
	if err != nil {
		f.add(c.line("prioplus"), "prioplus", "gives no channels: %v", err)
		return
	}
	highest, err := plan.Channel(plan.Priorities)
	if err != nil {
		f.add(c.line("prioplus.priorities"), "prioplus.priorities", "is %d: %v", p.Priorities, err)
		return
	}
	if longest := c.Scaled(p.Longest); longest > 0 && highest.Limit > longest {
		f.add(c.line("prioplus.priorities"), "prioplus.priorities", "is %d, want at most %d: the highest limit is base %v + %d · (fluctuation %v + noise %v) + fluctuation/2 + noise = %v, beyond longest, which is %v in this fabric",
			p.Priorities, plan.Plan.Priorities(longest), plan.Base, p.Priorities, plan.Fluctuation, plan.Noise, highest.Limit, longest)
	}
}
