package estimate

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// Tick is that of the chip's clock.
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

// Config is what the chip is to estimate.
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

// New makes the tables. It returns a *headroom.FieldError when c is not valid or does not
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
		return nil, &headroom.FieldError{Field: "chip", Value: fmt.Sprintf("%q", c.Chip), Allowed: "tofino1 or tofino2"}
	}
	var err error
	if t.logs, err = log2.New(c.Precision); err != nil {
		return nil, &headroom.FieldError{Field: "dsh.precision", Value: fmt.Sprintf("%+v", c.Precision), Allowed: err.Error()}
	}
	if n := max(c.Precision.LogEntries(keyBits), c.Precision.ExpEntries(wholeBits)); n > LogEntries {
		return nil, &headroom.FieldError{Field: "dsh.precision", Value: fmt.Sprintf("%+v", c.Precision), Allowed: fmt.Sprintf("one with at most %d entries", LogEntries),
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
			return &headroom.FieldError{Field: field("number"), Value: fmt.Sprint(p.Number), Allowed: "0 to 511, each once"}
		}
		seen[p.Number] = true
		if p.Rate <= 0 {
			return &headroom.FieldError{Field: field("rate"), Value: p.Rate.String(), Allowed: "a positive rate"}
		}
		limit := saturation * int64(p.Rate.In(Tick<<gradientUnit))
		if limit > maxGradient {
			return &headroom.FieldError{Field: field("rate"), Value: p.Rate.String(), Allowed: fmt.Sprintf("a rate of which 16 times are at most %d B in %v", maxGradient, Tick<<gradientUnit)}
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
		return &headroom.FieldError{Field: "ports", Value: fmt.Sprintf("%d kinds of links (rate and Φ) with %d thresholds", len(t.links), steps),
			Allowed: fmt.Sprintf("%d kinds and %d thresholds", profiles, PhiEntries)}
	}
	return nil
}

// Limit returns where |g| saturates, in bytes per 2^10 ns.
func (t *Tables) Limit() int64 { return t.limit }

// Gradient returns |g| for a growth in cells in a time in ticks, as the three tables give it:
// within the tables' error of cells·bytes·2^10/ticks, and 0 when that is below 1. A time of
// 0 counts as 1.
func (t *Tables) Gradient(growth, elapsed uint32) uint32 {
	up := fraction - t.logs.Precision().Frac
	var bytes, ticks uint64
	if growth != 0 {
		bytes = uint64(t.logs.Log2(uint64(growth)))<<up + t.offset
	}
	if elapsed != 0 {
		ticks = uint64(t.logs.Log2(uint64(elapsed))) << up
	}
	if bytes <= ticks {
		return 0
	}
	return uint32(min(t.logs.Exp2(int32((bytes-ticks)>>up)), uint64(t.limit)))
}

// Headroom returns φ̂ of the i-th port for ĝ in bytes per 2^Unit ticks: never below ĝ·D, and
// above by at most one step, two where ĝ is the end of one.
func (t *Tables) Headroom(i int, gradient int32) units.Bytes {
	if gradient <= 0 {
		return 0
	}
	return t.links[t.profile[i]].Lookup(int64(gradient) + 1)
}

// Error bounds |ĝ − Algorithm 2's ĝ| on every other packet, in bytes per 2^Unit ticks, when
// no |g| so far has exceeded largest (at most Limit, in bytes per 2^10 ns).
//
// One g is off by e = r·largest + 1, with r the tables' error (a cell's logarithm makes the
// exponential's buckets wider by a last place). S decays by a quarter that is
// off by 1/16 of itself and by less than 1, in each of its two parts, so it stays below
// 64/15 of the largest g and is off by 4·(e + S/64 + 2). The distance |S − 4·g| is off by
// that and 4·e; V is its sum, so it is off by four times that and by the same of its own
// decay.
func (t *Tables) Error(largest int64) int64 {
	const sum = 4 / (1 - quarterError)
	g := float64(largest)
	e := (t.logs.QuotientError()+math.Exp2(-float64(t.logs.Precision().Frac)))*g + 1
	s := sum * (g + e + 2)
	net := 4 * (e + s*quarterError/4 + 2)
	distance := net + 4*e
	v := sum * (8*g + distance + 1)
	return int64(math.Ceil(net + 4*(distance+v*quarterError/4+1)))
}
