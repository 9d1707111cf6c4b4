package experiment

import (
	"reflect"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/yamlnode"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

// decodePrioPlus reads PrioPlus over a delay law, whose own keys stand under "under":
//
//	kind: prioplus-swift
//	target: 4us         # D_target and D_limit, above the path's base delay
//	limit: 6.4us        # none for a highest priority
//	level: low          # low, middle or high: window and probe of the start
//	one_way: true       # one-way delays decide, else round trips
//	increase_bdp: 0.005 # the additive increase below, in parts of the BDP
//	under: {beta: 0.8}
func decodePrioPlus[P any](under func(P, fabric.FlowInfo, *channel) (prioplus.DelayLaw, error), defaults P, owned []string) lawKind {
	return func(m *yamlnode.Map) fabric.LawMaker {
		c := readChannel(m)
		base := defaults
		if sub := m.Sub("under"); sub != nil {
			readParams(sub, reflect.ValueOf(&base).Elem(), owned)
			sub.Done()
		}
		mk := maker{needs: fabric.Needs{Delay: c.oneWay}, make: func(f fabric.FlowInfo) (law.Law, error) {
			u, err := under(base, f, &c)
			if err != nil {
				return nil, err
			}
			return prioplus.New(u, c.params(f))
		}}
		if _, err := mk.make(sampleFlow()); err != nil {
			m.Fault("", "%v", err)
		}
		return mk
	}
}

// channel is what a file says of a priority.
type channel struct {
	p             prioplus.Params
	target, limit units.Time // above the base delay; limit 0 is none
	oneWay        bool
	increase      float64
}

func readChannel(m *yamlnode.Map) channel {
	c := channel{
		target: m.Time("target", 4*units.Microsecond, units.Nanosecond, units.Second),
		limit:  m.Time("limit", 0, units.Nanosecond, units.Second),
		oneWay: m.Bool("one_way", false), increase: m.Float("increase_bdp", 0, 0, 1),
	}
	levels := map[string]prioplus.Level{"low": prioplus.Low, "middle": prioplus.Middle, "high": prioplus.High}
	c.p.Level = levels[m.OneOf("level", "low", "low", "middle", "high")]
	readParams(m, reflect.ValueOf(&c.p).Elem(), []string{"LineRate", "BaseRTT", "OneWay", "MSS", "Target", "Limit", "Level", "Rand"})
	return c
}

func (c *channel) params(f fabric.FlowInfo) prioplus.Params {
	p := c.p
	p.LineRate, p.BaseRTT, p.MSS, p.Rand = f.Rate, f.BaseRTT, f.MSS, f.Rand
	base := f.BaseRTT
	if c.oneWay {
		p.OneWay = f.OneWay
		base = f.OneWay
	}
	p.Target, p.Limit = base+c.target, prioplus.NoLimit
	if c.limit > 0 {
		p.Limit = base + c.limit
	}
	return p
}

func swiftUnder(p swift.Params, f fabric.FlowInfo, c *channel) (prioplus.DelayLaw, error) {
	p.LineRate, p.BaseRTT, p.MSS = f.Rate, f.BaseRTT, f.MSS
	if c.increase > 0 {
		p.Increase = max(units.Bytes(c.increase*float64(f.BDP())), 1)
	}
	return swift.New(p)
}

func ledbatUnder(p ledbat.Params, f fabric.FlowInfo, c *channel) (prioplus.DelayLaw, error) {
	p.LineRate, p.MSS = f.Rate, f.MSS
	if c.increase > 0 {
		p.Gain = c.increase * float64(f.BDP()) / float64(f.MSS)
	}
	return ledbat.New(p)
}
