// Package preview predicts the effect of a configuration on traffic before a switch has it. It turns the fabric of
// a configuration into the simulator's, with the types from which the controller configures switches. It plays the
// same traffic with the same seeds on the old and the new configuration, and compares the measurements.
package preview

import (
	"context"
	_ "embed" // for measures.txt
	"fmt"
	"math"
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/sim/experiment"
)

//go:embed measures.yaml
var measures []byte

// Options are the input of a preview.
type Options struct {
	// Before is the configuration in force, nil for none. After is the planned one.
	Before, After *config.Config
	// Down has the names of links that are out of service.
	Down    map[string]bool
	Traffic Traffic
	// Measures are additional measures: entries for an experiment's list of measures, as YAML.
	Measures []byte
	Seed     uint64 // seed of the first run; the others follow
	Seeds    int    // at least 1
	// Watch receives progress from several goroutines; it may be nil.
	Watch func(experiment.Progress)
}

// Preview is the predicted effect of a change. Times and rates are at line rate.
type Preview struct {
	Traffic string `json:"traffic"`
	Seeds   int    `json:"seeds"`
	// Notes name the parts that the prediction leaves out.
	Notes    []string  `json:"notes,omitempty"`
	Measures []Measure `json:"measures"`
	Groups   []Group   `json:"groups"`
	Links    []Link    `json:"links"`
	Hops     uint64    `json:"packet_hops"` // sum over all runs
	// Flows are the flows of After's first run, if the traffic sets run.flows.
	Flows []experiment.FlowRecord `json:"-"`
}

// Range is a number over the seeds. Its Mean is nil if no seed has a value.
type Range struct {
	Mean *float64 `json:"mean"`
	Low  float64  `json:"low"`
	High float64  `json:"high"`
	text string
}

// String prints the mean with its spread over the seeds.
func (r *Range) String() string {
	if r == nil || r.Mean == nil {
		return "–"
	}
	return r.text
}

// Sides holds a value before and after the change. A side is nil if its configuration lacks the group, link or
// value. Before is nil if no configuration is in force.
type Sides[T any] struct {
	Before *T `json:"before,omitempty"`
	After  *T `json:"after,omitempty"`
}

// side returns the side of a variant.
func (s *Sides[T]) side(variant string) **T {
	if variant == before {
		return &s.Before
	}
	return &s.After
}

// Measure is one number.
type Measure struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	Sides[Range]
}

// Group is the result of flows that are counted together.
type Group struct {
	Name string `json:"name"`
	Sides[GroupSide]
}

// Link is one direction of a link.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	Sides[LinkSide]
}

// GroupSide is a group before or after. Goodput is in Gb/s over the whole run.
type GroupSide struct {
	Flows    *Range `json:"flows"`
	Done     *Range `json:"done"`
	Victims  *Range `json:"victims"`
	Goodput  *Range `json:"goodput_gbps"`
	FCT      *Range `json:"fct_us"`
	Slowdown *Range `json:"slowdown"`
}

// LinkSide is one direction of a link before or after the change, with the numbers of experiment.Link.
type LinkSide struct {
	Paused   *Range `json:"paused_percent"`
	Load     *Range `json:"load_percent"`
	Headroom *Range `json:"headroom_kb"`
	Drops    *Range `json:"drops"`
}

// The variants.
const (
	before = "before"
	after  = "after"
)

// Run plays the traffic on both configurations. An error is a fault of the traffic (a *yamlnode.Error if its file
// is wrong), a part of the fabric that the simulator cannot represent, or the end of ctx.
func Run(ctx context.Context, o Options) (*Preview, error) {
	p := &Preview{Traffic: o.Traffic.Name, Seeds: o.Seeds, Notes: slices.Clone(o.Traffic.Notes)}
	var fabrics []experiment.Fabric
	for _, side := range []struct {
		name string
		c    *config.Config
	}{{before, o.Before}, {after, o.After}} {
		if side.c == nil {
			continue
		}
		t, err := translate(side.name, side.c, o.Down)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", side.name, err)
		}
		for _, n := range t.notes {
			if !slices.Contains(p.Notes, n) {
				p.Notes = append(p.Notes, n)
			}
		}
		fabrics = append(fabrics, t.Fabric)
	}
	file, err := experiment.Over(o.Traffic.File, o.Traffic.Text, slices.Concat(measures, o.Measures), fabrics...)
	if err != nil {
		return nil, err
	}
	b := experiment.Batch{File: file, Seed: o.Seed, Seeds: o.Seeds, Shards: 1, Watch: o.Watch}
	rep, err := b.Run(ctx)
	if err != nil {
		return nil, err
	}
	if rep.Interrupted {
		return nil, context.Cause(ctx)
	}
	p.Hops = rep.Performance.PacketHops
	if i := slices.IndexFunc(rep.Outcomes, func(o *experiment.Outcome) bool { return o.Variant == after }); i >= 0 {
		p.Flows = rep.Outcomes[i].Flows
	}
	p.fill(rep)
	return p, nil
}

// Measure returns the measure with a name, or one without values if there is none.
func (p *Preview) Measure(name string) Measure {
	if i := slices.IndexFunc(p.Measures, func(m Measure) bool { return m.Name == name }); i >= 0 {
		return p.Measures[i]
	}
	return Measure{Name: name, Sides: Sides[Range]{After: &Range{}}}
}

// fill sets p's results from a report.
func (p *Preview) fill(rep *experiment.Report) {
	for _, s := range rep.Summaries() {
		m := entry(&p.Measures, func(m *Measure) bool { return m.Name == s.Measure }, Measure{Name: s.Measure, Unit: s.Unit})
		*m.side(s.Variant) = rangeOf(s.Sample)
	}
	for _, variant := range []string{before, after} {
		i := slices.IndexFunc(rep.Outcomes, func(o *experiment.Outcome) bool { return o.Variant == variant })
		if i < 0 {
			continue
		}
		of := func(number func(*experiment.Outcome) float64) *Range { return rangeOf(rep.SampleOf(variant, number)) }
		for g, own := range rep.Outcomes[i].Groups {
			*entry(&p.Groups, func(g *Group) bool { return g.Name == own.Name }, Group{Name: own.Name}).side(variant) = groupSide(g, of)
		}
		for l, own := range rep.Outcomes[i].Links {
			at := Link{From: own.From, To: own.To}
			*entry(&p.Links, func(l *Link) bool { return l.From == at.From && l.To == at.To && *l.side(variant) == nil }, at).side(variant) = linkSide(l, of)
		}
	}
}

// overSeeds returns the range of a number over one side's outcomes.
type overSeeds = func(number func(*experiment.Outcome) float64) *Range

func groupSide(i int, of overSeeds) *GroupSide {
	ended := func(number func(*experiment.Group) float64) *Range {
		return of(func(o *experiment.Outcome) float64 {
			if o.Groups[i].Done == 0 {
				return math.NaN()
			}
			return number(&o.Groups[i])
		})
	}
	return &GroupSide{
		Flows:    of(func(o *experiment.Outcome) float64 { return float64(o.Groups[i].Flows) }),
		Done:     of(func(o *experiment.Outcome) float64 { return float64(o.Groups[i].Done) }),
		Victims:  of(func(o *experiment.Outcome) float64 { return float64(o.Groups[i].Victims) }),
		Goodput:  of(func(o *experiment.Outcome) float64 { return float64(o.Groups[i].Bytes) * 8e3 / float64(o.Ended) }),
		FCT:      ended(func(g *experiment.Group) float64 { return g.FCT.Mean }),
		Slowdown: ended(func(g *experiment.Group) float64 { return g.Slowdown.Mean }),
	}
}

func linkSide(i int, of overSeeds) *LinkSide {
	return &LinkSide{
		Paused:   of(func(o *experiment.Outcome) float64 { return o.Links[i].Paused }),
		Load:     of(func(o *experiment.Outcome) float64 { return o.Links[i].Load }),
		Headroom: of(func(o *experiment.Outcome) float64 { return o.Links[i].Headroom }),
		Drops:    of(func(o *experiment.Outcome) float64 { return float64(o.Links[i].Drops) }),
	}
}

// entry returns the first entry of a list that matches, or adds one.
func entry[T any](list *[]T, matches func(*T) bool, added T) *T {
	for i := range *list {
		if e := &(*list)[i]; matches(e) {
			return e
		}
	}
	*list = append(*list, added)
	return &(*list)[len(*list)-1]
}

func rangeOf(s experiment.Sample) *Range {
	r := &Range{text: s.String()}
	if len(s.Values) > 0 {
		mean := s.Mean()
		r.Mean, r.Low, r.High = &mean, s.Quantile(0), s.Quantile(1)
	}
	return r
}
