package trafficmanager

import (
	"fmt"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// Port is a port of the chip that is in use.
type Port struct {
	Number uint32     // dev_port: pipe in bits 7 and 8, port of the pipe (0 to 71) below
	Rate   units.Rate // of the link; 0 or more. Thresholds do not depend on it.
}

// QueueLimit bounds an egress queue, which drops what exceeds it.
type QueueLimit struct {
	Port  uint32 // dev_port
	Queue int    // 0 to 7
	// Bytes are rounded down to whole cells. 0, or as much as the chip or the policy has,
	// means the chip's default.
	Bytes units.Bytes
}

// Config says what a chip's traffic manager is to do for some of its ports. All others are
// left alone, but for the pools, which all ports share.
type Config struct {
	Chip  string // Tofino1 or Tofino2
	Ports []Port // each once
	// MMU is the policy of the shared buffer, with its ports in the order of Ports. Buffer
	// is the part of the chip's memory that the policy may use: other ports need some too.
	// nil gives the buffer back to the chip's defaults.
	MMU *headroom.Config
	// Queues is how many egress queues of each port have strict priority over each other,
	// the highest number first: 0 to 8; 0 leaves the scheduler alone.
	Queues      int
	QueueLimits []QueueLimit
	// LosslessQueues are the egress queues of lossless classes, bit n for queue n: they do
	// not drop, and obey PFC for the class of their number. 0 means MMU.Lossless.
	LosslessQueues uint8
	// Victims are the ports that SPFC gives the whole shared pool now.
	Victims []uint32
	// MaxQDSample is the time constant of maxQD's low-pass filter; 0 means 10 µs.
	MaxQDSample units.Time
	// MinFrame is the smallest frame of lossless classes that a port may have to put into
	// headroom back to back: 64 B to MMU.MTU; 0 means 64 B. A frame takes whole cells, so
	// headroom for small frames takes up to 2.1 times the cells of headroom for large ones.
	MinFrame units.Bytes
	// Bridged is what the program puts before each frame for its way through the buffer.
	Bridged units.Bytes
}

// DefaultMaxQDSample is the time constant that Söze gives (§4).
const DefaultMaxQDSample = 10 * units.Microsecond

// maxSample bounds the time constant of a filter.
const maxSample = units.Second

func wrong(field string, value any, allowed string) error {
	return &headroom.FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

// withDefaults returns c with every default filled in.
func (c Config) withDefaults() Config {
	if c.MaxQDSample == 0 {
		c.MaxQDSample = DefaultMaxQDSample
	}
	if c.MinFrame == 0 {
		c.MinFrame = smallestFrame
	}
	if c.MMU != nil {
		m := c.MMU.WithDefaults()
		c.MMU = &m
		if c.LosslessQueues == 0 {
			c.LosslessQueues = m.Lossless
		}
	}
	return c
}

// check looks at everything but the policy.
func (c *Config) check(ch *chip) error {
	known := map[uint32]bool{}
	for i, p := range c.Ports {
		if p.Number > ch.lastPort() || p.Number&0x7f >= portsPerPipe || known[p.Number] {
			return wrong(fmt.Sprintf("ports[%d].number", i), p.Number,
				fmt.Sprintf("a dev_port of its own: pipe (0 to %d) · 128 + 0 to %d", ch.pipes-1, portsPerPipe-1))
		}
		if p.Rate < 0 {
			return wrong(fmt.Sprintf("ports[%d].rate", i), p.Rate, "0 or more")
		}
		known[p.Number] = true
	}
	if c.Queues < 0 || c.Queues > queues {
		return wrong("queues", c.Queues, fmt.Sprintf("0 to %d", queues))
	}
	if c.MaxQDSample < units.Nanosecond || c.MaxQDSample > maxSample {
		return wrong("max_qd_sample", c.MaxQDSample, fmt.Sprintf("%v to %v", units.Nanosecond, maxSample))
	}
	if err := c.checkLimits(ch, known); err != nil {
		return err
	}
	victims := c.MMU != nil && (c.MMU.Policy == headroom.SPFC || c.MMU.Policy == headroom.DSHSPFC)
	for i, v := range c.Victims {
		if !victims || !known[v] {
			return wrong(fmt.Sprintf("victims[%d]", i), v, "a port, with policy spfc or dsh+spfc")
		}
	}
	return nil
}

func (c *Config) checkLimits(ch *chip, known map[uint32]bool) error {
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
func (c *Config) bounds(ch *chip, l QueueLimit) bool {
	return l.Bytes > 0 && l.Bytes < ch.memory() && (c.MMU == nil || l.Bytes < c.MMU.Buffer)
}

func (c *Config) lossless(queue int) bool { return c.MMU != nil && c.LosslessQueues>>queue&1 != 0 }
