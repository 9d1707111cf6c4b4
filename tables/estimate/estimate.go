package estimate

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// Tick is the period of the chip's clock.
const Tick = units.Nanosecond

// Unit says in what the chip reports gradients: bytes per 2^Unit ticks, 4.096 µs. One g is
// in bytes per 2^(Unit−2) ticks, since the sums hold four of them.
const Unit = 12

const gradientUnit = Unit - 2

// saturation bounds |g| in multiples of the fastest port's line rate, as in package
// headroom.
const saturation = 16

// maxGradient keeps S, up to 4.3 times |g|, and V, up to 36 times, and their sum within the
// chip's 32 bits with a sign.
const maxGradient = 1 << 25

// Sizes of the tables in the compiled program (tna/chip.p4), and of their fields.
const (
	LogEntries = 2048
	ExpEntries = 2048
	PhiEntries = 1024

	depthBits = 19 // of deq_qdepth, in cells
	keyBits   = 32
	fraction  = log2.MaxFrac // bits of a logarithm
	wholeBits = 5            // of an exponent: 2³² is beyond every gradient
	profiles  = 1 << 8
)

// cells is the size of a cell of the packet buffer, in which a chip measures queues.
var cells = map[string]units.Bytes{"tofino1": 80, "tofino2": 176}

// Port is an egress port.
type Port struct {
	Number   uint32      // of the pipeline, 0 to 511
	Rate     units.Rate  // positive
	Headroom units.Bytes // Φ, at which φ̂ is clamped; positive
}

// Config is the input of the chip's estimate.
type Config struct {
	Chip      string         // tofino1 or tofino2
	Ports     []Port         // no number twice
	Precision log2.Precision // log2.Default by default
	Entries   int            // thresholds ĝ → φ̂ of each kind of links; phi.DefaultEntries by default
}

// Tables are the tables of one chip. They are never written after New.
type Tables struct {
	ports   []Port
	cell    units.Bytes
	logs    *log2.Table
	offset  uint64 // log2 of a cell in bytes and of 2^gradientUnit
	limit   int64  // of |g|
	links   []*phi.Table
	profile []int // index of links, by port
}

// New makes the tables. It returns a *units.FieldError when c is not valid or does not
// fit into the chip.
func New(c Config) (*Tables, error) {
	if c.Precision == (log2.Precision{}) {
		c.Precision = log2.Default()
	}
	if c.Entries == 0 {
		c.Entries = phi.DefaultEntries
	}
	t := &Tables{ports: c.Ports, cell: cells[c.Chip]}
	if t.cell == 0 {
		return nil, &units.FieldError{Field: "chip", Value: fmt.Sprintf("%q", c.Chip), Allowed: "tofino1 or tofino2"}
	}
	var err error
	if t.logs, err = log2.New(c.Precision); err != nil {
		return nil, &units.FieldError{Field: "dsh.precision", Value: fmt.Sprintf("%+v", c.Precision), Allowed: err.Error()}
	}
	if n := max(c.Precision.LogEntries(keyBits), c.Precision.ExpEntries(wholeBits)); n > LogEntries {
		return nil, &units.FieldError{Field: "dsh.precision", Value: fmt.Sprintf("%+v", c.Precision), Allowed: fmt.Sprintf("one with at most %d entries", LogEntries),
			Because: fmt.Sprintf("the logarithm takes %d and the exponential %d", c.Precision.LogEntries(keyBits), c.Precision.ExpEntries(wholeBits))}
	}
	t.offset = uint64(math.Round((math.Log2(float64(t.cell)) + gradientUnit) * (1 << fraction)))
	return t, t.addPorts(c.Entries)
}

// addPorts finds the kinds of links, and the limit of |g|.
func (t *Tables) addPorts(entries int) error {
	type kind struct {
		rate units.Rate
		phi  units.Bytes
	}
	known, seen := map[kind]int{}, map[uint32]bool{}
	steps := 0
	for i, p := range t.ports {
		field := func(name string) string { return fmt.Sprintf("ports[%d].%s", i, name) }
		if p.Number > 511 || seen[p.Number] {
			return &units.FieldError{Field: field("number"), Value: fmt.Sprint(p.Number), Allowed: "0 to 511, each once"}
		}
		seen[p.Number] = true
		if p.Rate <= 0 {
			return &units.FieldError{Field: field("rate"), Value: p.Rate.String(), Allowed: "a positive rate"}
		}
		limit := saturation * int64(p.Rate.In(Tick<<gradientUnit))
		if limit > maxGradient {
			return &units.FieldError{Field: field("rate"), Value: p.Rate.String(), Allowed: fmt.Sprintf("a rate of which 16 times are at most %d B in %v", maxGradient, Tick<<gradientUnit)}
		}
		t.limit = max(t.limit, limit)
		k := kind{p.Rate, p.Headroom}
		index, old := known[k]
		if !old {
			link, err := phi.New(phi.Config{Phi: p.Headroom, Delay: p.Rate.TxTime(p.Headroom), Unit: Unit, Tick: Tick, Entries: entries})
			if err != nil {
				return fmt.Errorf("ports[%d]: %w", i, err)
			}
			index = len(t.links)
			known[k] = index
			t.links = append(t.links, link)
			steps += len(link.Entries())
		}
		t.profile = append(t.profile, index)
	}
	if len(t.links) > profiles || steps > PhiEntries {
		return &units.FieldError{Field: "ports", Value: fmt.Sprintf("%d kinds of links (rate and Φ) with %d thresholds", len(t.links), steps),
			Allowed: fmt.Sprintf("%d kinds and %d thresholds", profiles, PhiEntries)}
	}
	return nil
}
