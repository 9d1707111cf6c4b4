package config

import (
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// PACCPlace is where the PACC loop of a switch runs.
type PACCPlace string

// The places.
const (
	AtController PACCPlace = "controller" // over P4Runtime
	AtSwitch     PACCPlace = "switch"     // in the switch's own process
)

// PACC sends congestion notifications from switches (package cnpgen). Each egress port that
// a link uses is watched, with parameters that follow from its rate.
type PACC struct {
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
	// Carry keeps what rounding takes from a flow's share for its next one (cnpgen.Params);
	// default false, as in the paper, where n flows settle n/Beta1 KB above Q_th.
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
	// Ageing is how long an entry outlives the last packet of its flow, by the wall clock,
	// 100 ms … 1 h; default 5 s. BMv2 looks once a second.
	Ageing time.Duration
	// At is where the loops run; default controller.
	At PACCPlace
	// Force accepts weights without a positive phase margin; default false.
	Force bool
}

// minControllerPeriod is the shortest period of a loop over P4Runtime: reading the counters
// of a switch takes milliseconds.
const minControllerPeriod = 5 * units.Millisecond

// minSwitchPeriod is the shortest period of a loop in the switch's process: below it the
// operating system's timers, not the loop, set the pace.
const minSwitchPeriod = 80 * units.Microsecond

func readPACC(d *decoder, n *yaml.Node, path string) PACC {
	v := PACC{CNPDSCP: defaultAckDSCP}
	weight := func(least string, ok func(float64) bool) func(n *yaml.Node, p string) float64 {
		return func(n *yaml.Node, p string) float64 { return d.float(n, p, ok, least+" and at most 1000") }
	}
	above := weight("a number above 0", func(x float64) bool { return x > 0 && x <= 1000 })
	from := weight("a number of 0 or more", func(x float64) bool { return x >= 0 && x <= 1000 })
	one, two := false, false
	d.object(n, path, []field{
		{"enabled", true, func(n *yaml.Node, p string) { v.Enabled = d.truth(n, p) }},
		{"interval", false, func(n *yaml.Node, p string) { v.Interval = d.time(n, p, units.Microsecond, units.Second) }},
		{"beta1", false, func(n *yaml.Node, p string) { v.Beta1, one = above(n, p), true }},
		{"beta2", false, func(n *yaml.Node, p string) { v.Beta2, two = from(n, p), true }},
		{"filter_weight", false, func(n *yaml.Node, p string) {
			v.FilterWeight = d.float(n, p, func(x float64) bool { return x > 0 && x <= 1 }, "a number above 0 and at most 1")
		}},
		{"carry", false, func(n *yaml.Node, p string) { v.Carry = d.truth(n, p) }},
		{"threshold", false, func(n *yaml.Node, p string) { v.Threshold = d.bytes(n, p, 1, maxLimit) }},
		{"burst", false, func(n *yaml.Node, p string) { v.Burst = d.bytes(n, p, 1, maxLimit) }},
		{"cnp_gap", false, func(n *yaml.Node, p string) { v.CNPGap = d.time(n, p, units.Nanosecond, units.Second) }},
		{"queue", false, func(n *yaml.Node, p string) { v.Queue = uint8(d.uint(n, p, 0, 7)) }},
		{"cnp_dscp", false, func(n *yaml.Node, p string) { v.CNPDSCP = uint8(d.uint(n, p, 0, 63)) }},
		{"max_flows", false, func(n *yaml.Node, p string) { v.MaxFlows = int(d.uint(n, p, 1, ids.FlowEntries)) }},
		{"ageing", false, func(n *yaml.Node, p string) { v.Ageing = d.wall(n, p, 100*time.Millisecond, time.Hour, false) }},
		{"at", false, func(n *yaml.Node, p string) {
			v.At = PACCPlace(d.text(n, p, "controller or switch"))
			if v.At != AtController && v.At != AtSwitch && v.At != "" {
				d.add(n.Line, p, "is %q, want controller or switch", clip(string(v.At)))
			}
		}},
		{"force", false, func(n *yaml.Node, p string) { v.Force = d.truth(n, p) }},
	})
	if one != two {
		d.add(n.Line, path, "has only one of beta1 and beta2, want both or none")
	}
	return v
}

// truth reads a boolean.
func (d *decoder) truth(n *yaml.Node, path string) bool {
	s, ok := d.scalar(n, path, "true or false")
	if ok && s != "true" && s != "false" {
		d.add(n.Line, path, "is %q, want true or false", clip(s))
	}
	return s == "true"
}

func (c *Config) paccDefaults(d *decoder) {
	p := &c.PACC
	if _, given := d.lines["pacc"]; !given {
		p.CNPDSCP = defaultAckDSCP
	}
	set(&p.Interval, cnpgen.PaperInterval)
	set(&p.FilterWeight, cnpgen.PaperFilterWeight)
	set(&p.CNPGap, min(cnpgen.PaperGap, p.Interval))
	set(&p.MaxFlows, ids.FlowEntries)
	set(&p.Ageing, 5*time.Second)
	set(&p.At, AtController)
}

// PACCParams returns the parameters of a port with this rate: in the time of a fabric at
// line rate, for the analysis, and in this fabric's own, for the loop. Amounts are the same.
func (c *Config) PACCParams(rate units.Rate) (line, own cnpgen.Params) {
	p := c.PACC
	line = cnpgen.ParamsFor(c.lineRate(rate), p.Interval)
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

// lineRate is what a rate of this fabric stands for.
func (c *Config) lineRate(rate units.Rate) units.Rate { return rate * units.Rate(c.Scale) }

// checkPACC holds the section against the fabric's rates, queues and targets.
func (c *Config) checkPACC(f *faults) {
	p := c.PACC
	if !p.Enabled {
		return
	}
	if p.CNPGap > p.Interval {
		f.add(c.line("pacc.cnp_gap"), "pacc.cnp_gap", "is %v, want at most the interval, which is %v", p.CNPGap, p.Interval)
		return
	}
	if !mulFits(int64(p.Interval), c.Scale*64) {
		f.add(c.line("pacc.interval"), "pacc.interval", "is %v, which is too long when multiplied by scale %d", p.Interval, c.Scale)
		return
	}
	switch period := c.Scaled(p.Interval); {
	case p.At == AtController && period < minControllerPeriod:
		f.add(c.line("pacc.at"), "pacc.at", "is controller with a period of %v in this fabric, want switch, or a period of %v or more: shorter ones cannot cross a network", period, minControllerPeriod)
	case period < minSwitchPeriod:
		f.add(c.line("pacc.interval"), "pacc.interval", "is %v, which makes a period of %v in this fabric, want %v or more", p.Interval, period, minSwitchPeriod)
	}
	c.checkPACCQueues(f)
	for i, s := range c.Switches {
		if p.At == AtSwitch && s.Target != Embedded {
			f.add(c.line("pacc.at"), "pacc.at", "is switch, but the switch %q has the target %s, want controller or the target embedded on every switch", s.Name, s.Target)
			break
		}
		if s.PriorityQueues <= ids.HighestQueue {
			f.add(c.line(fmt.Sprintf("switches[%d].priority_queues", i)), "pacc.enabled", "is true, but the switch %q has %d priority queues, want %d: queues are polled through queue %d", s.Name, s.PriorityQueues, ids.HighestQueue+1, ids.HighestQueue)
			break
		}
	}
	c.checkPACCRates(f)
}

func (c *Config) checkPACCQueues(f *faults) {
	queue := uint8(0) // of a DSCP that is not listed
	for _, k := range c.QoS.Classes {
		if k.DSCP == c.PACC.CNPDSCP {
			queue = k.Queue
		}
	}
	if queue <= c.PACC.Queue {
		f.add(c.line("pacc.cnp_dscp"), "pacc.cnp_dscp", "is %d, which qos.classes puts into queue %d, want a DSCP whose queue is above the watched one, %d: notifications must not wait behind the congestion", c.PACC.CNPDSCP, queue, c.PACC.Queue)
	}
}

// checkPACCRates looks at each rate of a switch's port once.
func (c *Config) checkPACCRates(f *faults) {
	seen := map[units.Rate]bool{}
	for _, l := range c.Links {
		for _, end := range []Endpoint{l.A, l.B} {
			if s := c.Switch(end.Node); s != nil && end.Port != 0 {
				rate := s.Port(end.Port).Rate
				set(&rate, l.Rate)
				if !seen[rate] {
					seen[rate] = true
					c.checkPACCRate(f, end, rate)
				}
			}
		}
	}
}

func (c *Config) checkPACCRate(f *faults, at Endpoint, rate units.Rate) {
	if !mulFits(int64(rate), c.Scale) {
		f.add(c.line("scale"), "scale", "is %d: the port %s with %v stands for a rate beyond all numbers", c.Scale, at, rate)
		return
	}
	line, _ := c.PACCParams(rate)
	if err := line.Validate(c.lineRate(rate)); err != nil {
		f.add(c.line("pacc"), "pacc", "does not fit the port %s, which stands for %v: %v", at, c.lineRate(rate), err)
		return
	}
	if line.Threshold > maxLimit {
		f.add(c.line("pacc.threshold"), "pacc.threshold", "is %v on the port %s, want at most %v", line.Threshold, at, maxLimit)
	}
	var unstable *cnpgen.UnstableError
	if _, err := line.Stability(c.lineRate(rate)); errors.As(err, &unstable) && !unstable.MarginStable() && !c.PACC.Force {
		f.add(c.line("pacc.beta1"), "pacc.beta1", "on the port %s, which stands for %v: %v; or say force: true", at, c.lineRate(rate), err)
	}
}
