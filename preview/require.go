package preview

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/sim/experiment"
	"github.com/headgate/headgate/units"
)

// Requirement is a bound on a predicted measure, such as pause_time<1%.
type Requirement struct {
	text, name, op string
	limit          float64 // in unit
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

// Measures returns what can be required, with units.
func Measures() (names []string, unit map[string]string) {
	unit = map[string]string{}
	for _, m := range list() {
		names = append(names, m.Name)
		unit[m.Name] = unitOf[m.What]
	}
	return names, unit
}

// Score is one measure of flows of a range of sizes, as measured.
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
		v, err := experiment.OfFlows(flows, m.What, m.Sizes, m.Stat)
		if err != nil {
			panic(err) // it is built in
		}
		if !math.IsNaN(v) {
			scores = append(scores, Score{m.Name, v})
		}
	}
	return scores
}

// unitOf is the unit of a kind of measure; the others count.
var unitOf = map[string]string{"paused": "%", "stopped": "µs", "fct": "µs", "headroom": "KB"}

// ParseRequirement reads one. The limit has the unit of its measure, or another one of its kind.
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

// Check returns which measure misses the requirement, with its value and what is allowed; nil if none
// does. The worst seed counts.
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
