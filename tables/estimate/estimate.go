// Package estimate makes the table entries of DSH's Algorithm 3 (DSH §IV-C) as a Tofino runs it on its
// egress queues (p4src/tna/gradient.p4). The tests have a model of the chip's arithmetic, with its bounds.
//
// A chip's registers add but do not scale, so packets of a queue take turns: one measures
// and adds to the sums S = 4·g_avg and V = 16·v_avg, the next takes a quarter off them. It is
// Algorithm 3 on every other packet. The math unit's quarter is up to 1/16 of itself off.
// headroom.Estimator has neither error.
//
// TestMeasuredErrors measures both errors for random walks of a queue at 100 Gb/s; nothing was tried on a chip. The
// arithmetic keeps ĝ within 10 % of the line rate of Algorithm 3 on the same packets, 0.7 % on average, and φ̂ within 8 %
// of Φ. The packets left out make ĝ differ by 23 % on average and by up to 290 %, φ̂ by 14 % of Φ and by up to all of it; it is
// too small by more than Φ/8 in a quarter of the cases. So φ̂ here shows how fast queues grow, and no headroom may be reduced
// by it.
package estimate

import (
	"cmp"
	"fmt"
	"math"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
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

// saturation bounds |g| in multiples of the fastest port's line rate, as in package headroom.
const saturation = 16

// maxGradient keeps S, up to 4.3 times |g|, V, up to 36 times, and their sum within the chip's signed 32 bits.
const maxGradient = 1 << 25

// Sizes of the tables in the compiled program (tna/chip.p4), and of their fields.
const (
	LogEntries = 2048
	ExpEntries = 2048
	PhiEntries = 1024

	depthBits = 19 // of deq_qdepth, in cells
	keyBits   = 32
	fraction  = log2.MaxFrac // bits of a logarithm
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
	c.Precision, c.Entries = cmp.Or(c.Precision, log2.Default()), cmp.Or(c.Entries, phi.DefaultEntries)
	t := &Tables{ports: c.Ports, cell: cells[c.Chip]}
	if err := units.Fault(t.cell == 0, "chip", fmt.Sprintf("%q", c.Chip), "tofino1 or tofino2", ""); err != nil {
		return nil, err
	}
	var err error
	if t.logs, err = log2.New(c.Precision); err != nil {
		return nil, &units.FieldError{Field: "dsh.precision", Value: fmt.Sprintf("%+v", c.Precision), Allowed: err.Error()}
	}
	if err := buffer.Fits(c.Precision, LogEntries); err != nil {
		return nil, err
	}
	t.offset = uint64(math.Round((math.Log2(float64(t.cell)) + gradientUnit) * (1 << fraction)))
	return t, t.addPorts(c.Entries)
}

func (t *Tables) addPorts(entries int) error {
	type kind struct {
		rate units.Rate
		phi  units.Bytes
	}
	known, seen := map[kind]int{}, map[uint32]bool{}
	steps := 0
	for i, p := range t.ports {
		field := func(name string) string { return fmt.Sprintf("ports[%d].%s", i, name) }
		limit := saturation * int64(p.Rate.In(Tick<<gradientUnit))
		if err := cmp.Or(
			units.Fault(p.Number > 511 || seen[p.Number], field("number"), p.Number, "0 to 511, each once", ""),
			units.Fault(p.Rate <= 0, field("rate"), p.Rate, "a positive rate", ""),
			units.Fault(limit > maxGradient, field("rate"), p.Rate, fmt.Sprintf("a rate of which 16 times are at most %d B in %v", maxGradient, Tick<<gradientUnit), ""),
		); err != nil {
			return err
		}
		seen[p.Number] = true
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
	return units.Fault(len(t.links) > profiles || steps > PhiEntries, "ports", fmt.Sprintf("%d kinds of links (rate and Φ) with %d thresholds", len(t.links), steps),
		fmt.Sprintf("%d kinds and %d thresholds", profiles, PhiEntries), "")
}

// Names that only the program for Tofino has.
const (
	PortTable     = "egress.gradient.estimate_port"
	ProfileAction = "egress.gradient.set_profile"
)

// Entries returns all entries, in an order that is safe to insert.
func (t *Tables) Entries() []buffer.Entry {
	up := fraction - t.logs.Precision().Frac
	var list []buffer.Entry
	for _, e := range t.logs.LogEntries(depthBits) {
		list = append(list, buffer.LogBytes(e.Key, keyBits-depthBits+e.PrefixLen, e.Result<<up+t.offset))
	}
	for _, e := range t.logs.LogEntries(keyBits) {
		list = append(list, buffer.LogTicks(e, up))
	}
	// A logarithm of 0 means that the queue stands still or the gradient is at most 1.
	list = append(list, buffer.Entry{Table: ids.TableExp2Name, Match: []buffer.Match{{Field: "log", Prefix: keyBits}},
		Action: buffer.Action{Name: ids.ActionSetGradientName, Params: []uint64{0}}})
	list = append(list, buffer.Exp2(t.logs, uint64(t.limit))...)
	list = append(list, buffer.Entry{Table: ids.TableExp2Name, Action: buffer.Action{Name: ids.ActionSetGradientName, Params: []uint64{uint64(t.limit)}}})
	for i, link := range t.links {
		list = append(list, buffer.Thresholds(uint64(i), link)...)
	}
	for i, p := range t.ports {
		list = append(list, buffer.Entry{Table: PortTable, Match: []buffer.Match{{Field: "egress_port", Value: uint64(p.Number), Prefix: buffer.Exact}},
			Action: buffer.Action{Name: ProfileAction, Params: []uint64{uint64(t.profile[i])}}})
	}
	return list
}
