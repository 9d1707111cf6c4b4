package preview

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/plotting"
	"github.com/headgate/headgate/sim/experiment"
	"github.com/headgate/headgate/units"
)

// mostDrawn bounds the links in a picture.
const mostDrawn = 8

// Worst returns the links with stopped time, used headroom or dropped packets on either side. The links that are
// stopped longest in their worst seed come first; equal ones are ordered by headroom, then by drops.
func (p *Preview) Worst() []Link {
	worst := func(l Link) (paused, headroom, drops float64) {
		for _, s := range []*LinkSide{l.Before, l.After} {
			if s != nil {
				paused, headroom, drops = max(paused, s.Paused.High), max(headroom, s.Headroom.High), max(drops, s.Drops.High)
			}
		}
		return paused, headroom, drops
	}
	list := slices.DeleteFunc(slices.Clone(p.Links), func(l Link) bool { a, b, c := worst(l); return a+b+c == 0 })
	slices.SortStableFunc(list, func(a, b Link) int {
		pa, ha, da := worst(a)
		pb, hb, db := worst(b)
		return cmp.Or(cmp.Compare(pb, pa), cmp.Compare(hb, ha), cmp.Compare(db, da))
	})
	return list
}

// Plot draws slowdown and completion times by size, and the worst links with their stopped time and headroom,
// before and after. The file's name must be one that plotting.Check accepts. Whiskers show the spread of the
// seeds.
func (p *Preview) Plot(file string) error {
	panels := []plotting.Panel{
		p.bySize("slowdown", "slowdown of flows"), p.bySize("fct", "completion time of flows (µs)"),
		p.byLink("pause time (%)", func(s *LinkSide) *Range { return s.Paused }), p.byLink("headroom in use (KB)", func(s *LinkSide) *Range { return s.Headroom }),
	}
	panels = slices.DeleteFunc(panels, func(p plotting.Panel) bool { return len(p.Categories) == 0 })
	if len(panels) == 0 {
		return fmt.Errorf("no flow has ended and no link was stopped: there is nothing to draw")
	}
	panels[0].Title = fmt.Sprintf("%s, %s: victim flows %s, drops %s", p.Traffic, units.Count(p.Seeds, "seed"), p.change("victim_flows"), p.change("drops"))
	return plotting.Save(file, panels...)
}

// change describes a measure's mean on both sides.
func (p *Preview) change(name string) string {
	m := p.Measure(name)
	text := func(r *Range) string {
		if r == nil || r.Mean == nil {
			return "–"
		}
		return fmt.Sprintf("%.3g", *r.Mean)
	}
	if m.Before == nil {
		return text(m.After)
	}
	return text(m.Before) + " → " + text(m.After)
}

// bar adds a range to a line of bars.
func bar(l *plotting.Line, r *Range) {
	low, mean, high := math.NaN(), math.NaN(), math.NaN()
	if r != nil && r.Mean != nil {
		low, mean, high = r.Low, *r.Mean, r.High
	}
	l.X, l.Y, l.Low, l.High = append(l.X, 0), append(l.Y, mean), append(l.Low, low), append(l.High, high)
}

// bySize draws the mean and the 99th percentile of a measure by size of flows.
func (p *Preview) bySize(what, label string) plotting.Panel {
	panel := plotting.Panel{X: "size of the flow", Y: label}
	lines := map[string]*plotting.Line{}
	for _, m := range list() {
		got := p.Measure(m.Name)
		if m.What != what || m.Sizes == "" || (got.Before == nil || got.Before.Mean == nil) && got.After.Mean == nil {
			continue
		}
		if !slices.Contains(panel.Categories, m.Sizes) {
			panel.Categories = append(panel.Categories, m.Sizes)
		}
		for _, side := range []struct {
			name string
			r    *Range
		}{{before, got.Before}, {after, got.After}} {
			if side.r == nil {
				continue
			}
			name := side.name + ", " + m.Stat
			if lines[name] == nil {
				lines[name] = &plotting.Line{Name: name}
			}
			bar(lines[name], side.r)
		}
	}
	for _, name := range []string{before + ", mean", after + ", mean", before + ", p99", after + ", p99"} {
		if l := lines[name]; l != nil {
			panel.Lines = append(panel.Lines, *l)
		}
	}
	for i, sizes := range panel.Categories {
		panel.Categories[i] = strings.NewReplacer("0-10KB", "below 10 KB", "1MB-", "from 1 MB", "-", " to ", "KB", " KB", "MB", " MB").Replace(sizes)
	}
	return panel
}

// byLink draws a number for each of the worst links.
func (p *Preview) byLink(label string, of func(*LinkSide) *Range) plotting.Panel {
	panel := plotting.Panel{X: "link", Y: label}
	sides := []plotting.Line{{Name: before}, {Name: after}}
	used := []bool{false, false}
	worst := p.Worst()
	for _, l := range worst[:min(len(worst), mostDrawn)] {
		panel.Categories = append(panel.Categories, l.From+"→"+l.To)
		for i, s := range []*LinkSide{l.Before, l.After} {
			used[i] = used[i] || s != nil
			if s == nil {
				s = &LinkSide{}
			}
			bar(&sides[i], of(s))
		}
	}
	for i, l := range sides {
		if used[i] {
			panel.Lines = append(panel.Lines, l)
		}
	}
	return panel
}

// Requirement is a bound on a predicted measure, such as pause_time<1%.
type Requirement struct {
	text, name, op string
	limit          float64 // in the unit of the field unit
	unit           string
}

var requirement = regexp.MustCompile(`^\s*([A-Za-z0-9_]+)\s*(<=|<|>=|>)\s*([0-9.]+)\s*([%A-Za-zµ]*)\s*$`)

// measure is an entry of measures.yaml.
type measure struct{ Name, What, Sizes, Stat string }

func list() []measure {
	var file struct{ Measures []measure }
	if err := yaml.Unmarshal(measures, &file); err != nil {
		panic(err) // it is built in
	}
	return file.Measures
}

// Measures returns the names of the measures that a Requirement may bound, and their units.
func Measures() (names []string, unit map[string]string) {
	unit = map[string]string{}
	for _, m := range list() {
		names = append(names, m.Name)
		unit[m.Name] = unitOf[m.What]
	}
	return names, unit
}

// Score is the value of one measure, for flows of a range of sizes.
type Score struct {
	Name  string
	Value float64
}

// Scores returns the measures of completed flows by size, for the sizes that occurred.
func Scores(flows []experiment.FlowRecord) (scores []Score) {
	for _, m := range list() {
		if m.Sizes == "" {
			continue
		}
		v, err := experiment.FlowStat(flows, m.What, m.Sizes, m.Stat)
		if err != nil {
			panic(err) // it is built in
		}
		if !math.IsNaN(v) {
			scores = append(scores, Score{m.Name, v})
		}
	}
	return scores
}

// unitOf has the unit of each kind of measure. Measures of other kinds count something and have no unit.
var unitOf = map[string]string{"paused": "%", "stopped": "µs", "fct": "µs", "headroom": "KB"}

// ParseRequirement reads a requirement. The limit has the unit of its measure, or another unit of the same kind.
func ParseRequirement(text string) (Requirement, error) {
	names, unit := Measures()
	m := requirement.FindStringSubmatch(text)
	if m == nil {
		return Requirement{}, fmt.Errorf("%q is not allowed: want a measure, one of < <= > >= and a limit, such as pause_time<1%%", text)
	}
	r := Requirement{text: text, name: m[1], op: m[2]}
	var known bool
	if r.unit, known = unit[r.name]; !known {
		return r, fmt.Errorf("%q: there is no measure %q: want one of %s", text, r.name, strings.Join(names, ", "))
	}
	var err error
	switch given := m[4]; r.unit {
	case "µs":
		var t units.Time
		if t, err = units.ParseTime(m[3] + strings.Replace(given, "µ", "u", 1)); err == nil {
			r.limit = t.Micros()
		}
	case "KB":
		var n units.Bytes
		if n, err = units.ParseBytes(m[3] + given); err == nil {
			r.limit = float64(n) / 1e3
		}
	default:
		if r.limit, err = strconv.ParseFloat(m[3], 64); err == nil && given != r.unit {
			err = errors.New("another unit")
		}
	}
	if err != nil {
		want := map[string]string{"%": "percent such as 1%", "µs": "a time such as 100us", "KB": "an amount such as 64KB", "": "a number without a unit"}[r.unit]
		return r, fmt.Errorf("%q: the limit is %q, want %s", text, m[3]+m[4], want)
	}
	return r, nil
}

// Check returns an error if the measure has no value or misses the requirement in its worst seed. The error names
// the value and what is allowed.
func (r Requirement) Check(p *Preview) error {
	m := p.Measure(r.name)
	if m.After.Mean == nil {
		return fmt.Errorf("%s has no value, since no flow of these sizes has ended: want %s", r.name, r.text)
	}
	worst, ok := m.After.High, false
	switch r.op {
	case "<":
		ok = worst < r.limit
	case "<=":
		ok = worst <= r.limit
	case ">":
		worst = m.After.Low
		ok = worst > r.limit
	case ">=":
		worst = m.After.Low
		ok = worst >= r.limit
	}
	if !ok {
		return fmt.Errorf("%s is predicted as %s, in the worst of %d seeds %.5g%s: want %s", r.name, m.After.String()+spaced(r.unit), p.Seeds, worst, spaced(r.unit), r.text)
	}
	return nil
}

func spaced(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}
