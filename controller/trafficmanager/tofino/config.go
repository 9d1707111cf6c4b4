package tofino

import (
	"fmt"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/units"
)

// maxSample bounds the time constant of a filter.
const maxSample = units.Second

func wrong(field string, value any, allowed string) error {
	return &units.FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

// config is what is wanted of a chip, with every default filled in.
type config struct {
	trafficmanager.Config
	bridged units.Bytes // Options.Bridged
}

func newConfig(c trafficmanager.Config, bridged units.Bytes) *config {
	if c.MMU != nil {
		m := c.MMU.WithDefaults()
		c.MMU = &m
		if c.LosslessQueues == 0 {
			c.LosslessQueues = m.Lossless
		}
	}
	return &config{c, bridged}
}

// check looks at everything but the policy.
func (c *config) check(ch *chip) error {
	known := map[uint32]bool{}
	for i, p := range c.Ports {
		if p.Number > ch.lastPort() || p.Number&0x7f >= portsPerPipe || known[p.Number] {
			return wrong(fmt.Sprintf("ports[%d].number", i), p.Number,
				fmt.Sprintf("a dev_port of its own: pipe (0 to %d) · 128 + 0 to %d", ch.pipes-1, portsPerPipe-1))
		}
		known[p.Number] = true
	}
	if c.Queues < 0 || c.Queues > queues {
		return wrong("queues", c.Queues, fmt.Sprintf("0 to %d", queues))
	}
	for name, t := range c.Filters {
		if t < units.Nanosecond || t > maxSample {
			return wrong("filters["+name+"]", t, fmt.Sprintf("%v to %v", units.Nanosecond, maxSample))
		}
	}
	if err := c.checkLimits(ch, known); err != nil {
		return err
	}
	return c.CheckVictims()
}

func (c *config) checkLimits(ch *chip, known map[uint32]bool) error {
	seen := map[[2]uint32]bool{}
	for i, l := range c.QueueLimits {
		name := func(field string) string { return fmt.Sprintf("queue_limits[%d].%s", i, field) }
		at := [2]uint32{l.Port, uint32(l.Queue)}
		switch {
		case !known[l.Port]:
			return wrong(name("port"), l.Port, "one of the ports")
		case l.Queue < 0 || l.Queue >= queues || seen[at]:
			return wrong(name("queue"), l.Queue, fmt.Sprintf("0 to %d, each once", queues-1))
		case l.Bytes < 0 || l.Bytes > 0 && l.Bytes < ch.cell:
			return wrong(name("bytes"), fmt.Sprintf("%d B", l.Bytes), fmt.Sprintf("0 (none) or %d B (a cell) or more", ch.cell))
		case c.lossless(l.Queue) && c.bounds(ch, l):
			return wrong(name("bytes"), fmt.Sprintf("%d B", l.Bytes), fmt.Sprintf("0 (none) or %d B or more for queue %d, which is lossless: a limit drops", c.MMU.Buffer, l.Queue))
		}
		seen[at] = true
	}
	return nil
}

// bounds reports whether a limit is one: less than the policy's buffer and the chip's.
func (c *config) bounds(ch *chip, l trafficmanager.QueueLimit) bool {
	return l.Bytes > 0 && l.Bytes < ch.memory() && (c.MMU == nil || l.Bytes < c.MMU.Buffer)
}

func (c *config) lossless(queue int) bool { return c.MMU != nil && c.LosslessQueues>>queue&1 != 0 }
