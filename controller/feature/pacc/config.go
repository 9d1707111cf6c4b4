package pacc

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// Place is where the PACC loop of a switch runs.
type Place string

// The places.
const (
	AtController Place = "controller" // over P4Runtime
	AtSwitch     Place = "switch"     // in the switch's own process
)

// Config is the section pacc: it sends congestion notifications from switches (package cnpgen). Each egress port that
// a link uses is watched, with parameters that follow from its rate.
type Config struct {
	// Enabled switches it on; default false.
	Enabled bool
	// Interval is T, the period of the loop at line rate, 1 µs … 1 s; default 80 µs.
	Interval units.Time
	// Beta1 and Beta2 are the controller's weights in CNPs per KB of queue and per KB of its
	// change in a period; Beta1 above 0, Beta2 0 or more, at most 1000, both or none. Default
	// the paper's 0.05 and 0.1, scaled from 25 Gb/s and 80 µs to the port's rate and T.
	Beta1, Beta2 float64
	// FilterWeight is w of the queue's moving average, above 0 and at most 1; default 0.9.
	FilterWeight float64
	// Carry adds the fraction that rounding cuts from a flow's share to its next share (cnpgen.Params); default
	// false, as in the paper, where n flows settle n/Beta1 KB above Q_th.
	Carry bool
	// Threshold is Q_th, 1 B … 4 GB; 0, the default, is C·T/2 of the port.
	Threshold units.Bytes
	// Burst is Q_burst and B_th, 1 B … 4 GB and below Threshold; 0, the default, is d·C of
	// the port with d = 1.28 µs.
	Burst units.Bytes
	// CNPGap is the least time between two CNPs to one flow at line rate, 1 ns … 1 s and at
	// most Interval; default 4 µs.
	CNPGap units.Time
	// Queue is the queue that is watched on every port, 0 … 7; default 0.
	Queue uint8
	// CNPDSCP is the DSCP of the notifications, 0 … 63; default 48 (CS6). Its queue must be
	// served before the watched one.
	CNPDSCP uint8
	// MaxFlows bounds the flow table of a switch, 1 … 16 384; default 16 384.
	MaxFlows int
	// Ageing is how long an entry outlives the last packet of its flow, by the wall clock, 100 ms … 1 h; default 5
	// s. BMv2 checks once a second.
	Ageing time.Duration
	// At is where the loops run; default controller.
	At Place
	// Force accepts weights without a positive phase margin; default false.
	Force bool
}

// minControllerPeriod is the shortest period over P4Runtime: reading a switch's counters takes milliseconds.
const minControllerPeriod = 5 * units.Millisecond

// minSwitchPeriod is the shortest period in the switch: below it the operating system's timers set the pace.
const minSwitchPeriod = 80 * units.Microsecond

// FromConfig returns the section of a configuration.
func FromConfig(c *config.Config) Config { return config.SectionOf[Config](c, "pacc") }

func read(m *yamlnode.Map, _ *config.Config) any {
	m.Need("enabled")
	if m.Has("beta1") != m.Has("beta2") {
		m.Fault("", "has only one of beta1 and beta2, want both or none")
	}
	interval := m.Time("interval", cnpgen.PaperInterval, units.Microsecond, units.Second)
	return Config{
		Enabled: m.Bool("enabled", false), Interval: interval,
		Beta1: m.Above("beta1", 0, 0, 1000), Beta2: m.Float("beta2", -1, 0, 1000),
		FilterWeight: m.Above("filter_weight", cnpgen.PaperFilterWeight, 0, 1), Carry: m.Bool("carry", false),
		Threshold: m.Bytes("threshold", 0, 1, ids.Unlimited), Burst: m.Bytes("burst", 0, 1, ids.Unlimited),
		CNPGap: m.Time("cnp_gap", min(cnpgen.PaperGap, interval), units.Nanosecond, units.Second),
		Queue:  uint8(m.Int("queue", 0, 0, 7)), CNPDSCP: uint8(m.Int("cnp_dscp", 48, 0, 63)),
		MaxFlows: m.Int("max_flows", ids.FlowEntries, 1, ids.FlowEntries),
		Ageing:   m.Wall("ageing", 5*time.Second, 100*time.Millisecond, time.Hour),
		At:       Place(m.OneOf("at", string(AtController), string(AtController), string(AtSwitch))),
		Force:    m.Bool("force", false),
	}
}

// Params returns the parameters of a port with this rate. line has the times of a fabric at line rate, for the
// analysis; own has the times of this fabric, for the loop. Amounts are the same in both.
func (p Config) Params(c *config.Config, rate units.Rate) (line, own cnpgen.Params) {
	lineRate, _ := c.LineRate(rate)
	line = cnpgen.ParamsFor(lineRate, p.Interval)
	line.FilterWeight, line.CNPGap, line.MaxFlows, line.Carry = p.FilterWeight, p.CNPGap, p.MaxFlows, p.Carry
	if p.Beta1 > 0 {
		line.Beta1, line.Beta2 = p.Beta1, p.Beta2
	}
	if p.Threshold > 0 {
		line.Threshold = p.Threshold
	}
	if p.Burst > 0 {
		line.Burst = p.Burst
	}
	return line, line.Stretch(float64(c.Scale))
}

// check is config.Section.Check: it compares the section with the fabric's rates, queues and targets.
func check(c *config.Config, d *yamlnode.Doc) {
	p := FromConfig(c)
	if !p.Enabled {
		return
	}
	if p.CNPGap > p.Interval {
		d.Fault("pacc.cnp_gap", "is %v, want at most the interval, which is %v", p.CNPGap, p.Interval)
		return
	}
	if !c.Fits(p.Interval) {
		d.Fault("pacc.interval", "is %v, which is too long when multiplied by scale %d", p.Interval, c.Scale)
		return
	}
	switch period := c.Scaled(p.Interval); {
	case p.At == AtController && period < minControllerPeriod:
		d.Fault("pacc.at", "is controller with a period of %v in this fabric, want switch, or a period of %v or more: shorter ones cannot cross a network", period, minControllerPeriod)
	case period < minSwitchPeriod:
		d.Fault("pacc.interval", "is %v, which makes a period of %v in this fabric, want %v or more", p.Interval, period, minSwitchPeriod)
	}
	if queue := qos.FromConfig(c).ClassOf(p.CNPDSCP).Queue; queue <= p.Queue {
		d.Fault("pacc.cnp_dscp", "is %d, which qos.classes puts into queue %d, want a DSCP whose queue is above the watched one, %d: notifications must not wait behind the congestion", p.CNPDSCP, queue, p.Queue)
	}
	for i, s := range c.Switches {
		if p.At == AtSwitch && s.Target != config.Embedded {
			d.Fault("pacc.at", "is switch, but the switch %q has the target %s, want controller or the target embedded on every switch", s.Name, s.Target)
			break
		}
		if s.PriorityQueues <= ids.HighestQueue {
			d.Fault(fmt.Sprintf("switches[%d].priority_queues", i), "is %d on the switch %q, want %d with pacc: queues are polled through queue %d", s.PriorityQueues, s.Name, ids.HighestQueue+1, ids.HighestQueue)
			break
		}
	}
	p.checkRates(c, d)
}

// checkRates checks each combination of port rate and queue capacity once.
func (p Config) checkRates(c *config.Config, d *yamlnode.Doc) {
	type kind struct {
		rate  units.Rate
		room  units.Bytes
		field string
	}
	seen := map[kind]bool{}
	for _, l := range c.Links {
		for _, end := range []config.Endpoint{l.A, l.B} {
			s := c.Switch(end.Node)
			if s == nil || end.Port == 0 {
				continue
			}
			k := kind{rate: cmp.Or(s.Port(end.Port).Rate, l.Rate)}
			if k.room, k.field = room(c, s); !seen[k] {
				seen[k] = true
				p.checkRate(c, d, end, k.rate, k.room, k.field)
			}
		}
	}
}

// room returns the capacity of a queue of a switch, and the field that sets it.
func room(c *config.Config, s *config.Switch) (units.Bytes, string) {
	if b := buffer.FromSwitch(s); b.Policy != buffer.Off && b.Size > 0 && b.Size < qos.FromConfig(c).QueueLimit {
		return b.Size, "buffer.size"
	}
	return qos.FromConfig(c).QueueLimit, "qos.queue_limit"
}

// checkRate checks the ranges of a port's parameters, and compares them with the queue's capacity: with a threshold
// that no queue can reach, PACC would never send a CNP.
func (p Config) checkRate(c *config.Config, d *yamlnode.Doc, at config.Endpoint, rate units.Rate, room units.Bytes, field string) {
	lineRate, ok := c.LineRate(rate)
	if !ok {
		d.Fault("scale", "is %d: the port %s with %v stands for a rate beyond all numbers", c.Scale, at, rate)
		return
	}
	line, _ := p.Params(c, rate)
	var unstable *cnpgen.UnstableError
	if err := line.Validate(lineRate); err != nil {
		d.Fault("pacc", "does not fit the port %s, which stands for %v: %v", at, lineRate, err)
	} else {
		if line.Threshold > ids.Unlimited {
			d.Fault("pacc.threshold", "is %v on the port %s, want at most %v", line.Threshold, at, ids.Unlimited)
		}
		if _, err := line.Stability(lineRate); errors.As(err, &unstable) && !unstable.MarginStable() && !p.Force {
			d.Fault("pacc.beta1", "on the port %s, which stands for %v: %v; or say force: true", at, lineRate, err)
		}
	}
	switch {
	case line.Threshold < room:
	case p.Threshold > 0:
		d.Fault("pacc.threshold", "is %v on the port %s, want less than its queue can hold, %v (%s)", p.Threshold, at, room, field)
	default:
		d.Fault("pacc.interval", "is %v, which makes Q_th = C·T/2 = %v · %v / 2 = %v on the port %s, want less than its queue can hold, %v (%s): PACC would never see congestion; choose a shorter interval, or a threshold",
			p.Interval, lineRate, p.Interval, line.Threshold, at, room, field)
	}
}
