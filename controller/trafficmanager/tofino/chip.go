package tofino

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// The chips that Shape knows.
const (
	Tofino1 = "tofino1"
	Tofino2 = "tofino2"
)

const (
	portsPerPipe  = 72
	groupsPerPipe = 128 // priority groups besides the ports' default groups
	queues        = 8   // queues of a port that the program uses
	// step is the unit of hysteresis and of a port's limits.
	step = 8
	// leastHysteresis is the least hysteresis with which dynamic thresholds work, in cells.
	leastHysteresis = 32
	smallestFrame   = 64
	// framing is the preamble and the gap in bytes. They are on the wire but not in the buffer.
	framing = 20
)

// chip holds the constants of a traffic manager (p4lang/open-p4studio, pkgsrc/bf-drivers/src/ traffic_mgr/init).
type chip struct {
	name  string
	cell  units.Bytes
	cells uint64 // cells of the largest model; the driver asks the chip for its own number
	pipes uint32
	// Defaults of the driver.
	pool, poolLimit       uint64 // size of ingress application pool 0, and limit of a default group in it
	poolShare             string
	guaranteed            uint64 // guaranteed cells of a default group
	reserved, ingressMost uint64 // limit of all guarantees, and of ingress as a whole; 0 for no limit
}

func (c *chip) lastPort() uint32    { return (c.pipes-1)<<7 | portsPerPipe - 1 }
func (c *chip) memory() units.Bytes { return units.Bytes(c.cells) * c.cell }

func chipOf(name string) (*chip, error) {
	switch name {
	case Tofino1:
		return &chip{
			name: Tofino1, cell: 80, cells: 280 * 1024, pipes: 4,
			pool: 89260, poolLimit: 305, poolShare: "80%", guaranteed: 40,
		}, nil
	case Tofino2:
		return &chip{
			name: Tofino2, cell: 176, cells: 384 * 1024, pipes: 4,
			pool: 80579, poolLimit: 1103, poolShare: "80%", guaranteed: 72,
			reserved: 0x6000, ingressMost: 0x3e800,
		}, nil
	}
	return nil, wrong("chip", fmt.Sprintf("%q", name), Tofino1+" or "+Tofino2)
}

// up returns the cells for n bytes. Guarantees and headroom are rounded up.
func (c *chip) up(n units.Bytes) uint64 { return uint64((n + c.cell - 1) / c.cell) }

// down returns the whole cells in n bytes; limits are rounded down.
func (c *chip) down(n units.Bytes) uint64 { return uint64(n / c.cell) }

// steps rounds cells up to the unit of a port's limits and of hysteresis.
func steps(cells uint64) uint64 { return (cells + step - 1) / step * step }

// headroom returns the cells that phi bytes from a link may take, in frames of least to mtu bytes with bridged
// bytes before each. Every frame takes whole cells: on Tofino 2 a frame of 64 B, 84 B on the wire, takes 176 B. phi
// counts bytes on the wire, except for three frames that headroom.Required counts without framing.
func (c *chip) headroom(phi, least, mtu, bridged units.Bytes) uint64 {
	if phi <= 0 {
		return 0
	}
	// The worst frame is the smallest one, or the first to need one more cell.
	num, den := c.up(least+bridged), uint64(least+framing)
	for n := c.cell + 1 - bridged; n <= mtu; n += c.cell {
		if n < least {
			continue
		}
		if a, b := c.up(n+bridged), uint64(n+framing); a*den > num*b {
			num, den = a, b
		}
	}
	hi, lo := bits.Mul64(uint64(phi)+3*framing, num)
	if hi >= den {
		return 1<<63 - 1
	}
	q, r := bits.Div64(hi, lo, den)
	if r > 0 {
		q++
	}
	return q
}

// shares are the values of dynamic_baf. Each is the part of the pool that a group gets if it is alone in it:
// α/(1+α) for α of 1/64 to 4 (DSH Eq. 2).
func shares() []string {
	return []string{"1.5%", "3%", "6%", "11%", "20%", "33%", "50%", "66%", "80%"}
}

const (
	leastAlpha headroom.Alpha = -6
	mostAlpha  headroom.Alpha = 2
)

// share returns the dynamic_baf of α.
func share(a headroom.Alpha) (string, error) {
	if a >= leastAlpha && a <= mostAlpha {
		return shares()[a-leastAlpha], nil
	}
	nearest := min(max(a, leastAlpha), mostAlpha)
	var all []string
	for x := leastAlpha; x <= mostAlpha; x++ {
		all = append(all, x.String())
	}
	return "", &units.FieldError{
		Field: "alpha", Value: a.String(), Allowed: strings.Join(all, ", ") + " on this chip; the nearest is " + nearest.String(),
		Because: "the chip has dynamic_baf " + strings.Join(shares(), ", "),
	}
}

// maxSample bounds the time constant of a filter.
const maxSample = units.Second

func wrong(field string, value any, allowed string) error {
	return &units.FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

// config is the wanted configuration of a chip, with every default filled in.
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

// check checks everything except the policy.
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

// bounds reports whether a limit has an effect: it is below both the policy's buffer and the chip's.
func (c *config) bounds(ch *chip, l trafficmanager.QueueLimit) bool {
	return l.Bytes > 0 && l.Bytes < ch.memory() && (c.MMU == nil || l.Bytes < c.MMU.Buffer)
}

func (c *config) lossless(queue int) bool { return c.MMU != nil && c.LosslessQueues>>queue&1 != 0 }
