package emulation

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/sim/experiment"
)

// Measure is a number of a play. What is a key of meters. A measure that the simulator also has goes by the same name
// in experiments.
type Measure struct {
	Name, What string
	Group      string // the flow, "" for the victim, or the host of host_pauses; makespan always uses the scenario's last flow
	Phase      int    // the phase's number, from 0 on
}

// meter reads a measure of a play. It gives NaN for no value, and infinity for a time that was never reached.
type meter struct {
	unit      string
	simulated bool // a preview measures the same
	of        func(v *Result, m Measure) float64
}

// meters has the measures by What.
var meters = map[string]meter{
	"goodput":     {"Gb/s", true, func(v *Result, m Measure) float64 { return v.flow(m, m.Phase).Measured / 1e9 }},
	"lowest":      {"Gb/s", false, func(v *Result, m Measure) float64 { return v.flow(m, m.Phase).Lowest / 1e9 }},
	"loss":        {"%", false, func(v *Result, m Measure) float64 { return 100 * (1 - v.flow(m, 1).Measured/v.flow(m, 0).Measured) }},
	"pauses":      {"", true, func(v *Result, _ Measure) float64 { return float64(v.Pause.Frames) }},
	"host_pauses": {"", false, func(v *Result, m Measure) float64 { return float64(v.Pause.of(m.Group)) }},
	"stopped":     {"µs", true, func(v *Result, _ Measure) float64 { return v.Pause.TimeUS }},
	"shared":      {"KB", false, func(v *Result, _ Measure) float64 { return v.peak(func(p Pools) uint64 { return p.Shared }) }},
	"headroom": {"KB", true, func(v *Result, _ Measure) float64 {
		return v.peak(func(p Pools) uint64 { return p.Headroom + p.Insurance })
	}},
	"queue":          {"KB", false, ofQueue(func(q *Queue) float64 { return q.PeakKB })},
	"settled_queue":  {"KB", false, ofQueue(func(q *Queue) float64 { return q.SettledKB })},
	"settled_low":    {"KB", false, ofQueue(func(q *Queue) float64 { return q.LowKB })},
	"settled_high":   {"KB", false, ofQueue(func(q *Queue) float64 { return q.HighKB })},
	"settled":        {"µs", false, ofQueue(func(q *Queue) float64 { return orNever(q.SettledUS) })},
	"steady":         {"µs", false, ofQueue(func(q *Queue) float64 { return orNever(q.SteadyUS) })},
	"makespan":       {"µs", true, func(v *Result, _ Measure) float64 { return v.burst().makespan() }},
	"cnps":           {"", false, func(v *Result, m Measure) float64 { return float64(v.total(m.Group).CNPs) }},
	"lossless_drops": {"", true, func(v *Result, _ Measure) float64 { return float64(v.Losses.Lossless) }},
	"drops":          {"", false, func(v *Result, _ Measure) float64 { return float64(v.Losses.Dropped() + v.Losses.Faults()) }},
}

// ofQueue measures the recorded queue. It gives NaN if the scenario records none.
func ofQueue(of func(*Queue) float64) func(*Result, Measure) float64 {
	return func(v *Result, _ Measure) float64 {
		if v.Queue == nil {
			return math.NaN()
		}
		return of(v.Queue)
	}
}

// orNever returns a time, or infinity for nil.
func orNever(us *float64) float64 {
	if us == nil {
		return math.Inf(1)
	}
	return *us
}

// flow returns a measure's flow in a phase.
func (v *Result) flow(m Measure, phase int) FlowPhase {
	if phase >= len(v.Phases) {
		return PhaseResult{}.flow(m.Group)
	}
	return v.Phases[phase].flow(m.Group)
}

// flow returns a flow in the phase. Its rates are NaN if the flow did not run.
func (p PhaseResult) flow(name string) FlowPhase {
	if i := slices.IndexFunc(p.Flows, func(f FlowPhase) bool { return f.Name == name }); i >= 0 {
		return p.Flows[i]
	}
	return FlowPhase{Measured: math.NaN(), Lowest: math.NaN()}
}

// total returns a flow over the whole play.
func (v *Result) total(flow string) FlowTotal {
	return v.Flows[slices.IndexFunc(v.Flows, func(f FlowTotal) bool { return f.Name == flow })]
}

// makespan returns when the last of the flows was done, or NaN if one was not.
func (f FlowTotal) makespan() float64 {
	if f.Done < f.Flows {
		return math.NaN()
	}
	return f.LastUS
}

// peak returns the largest amount that a pool of any switch held, in KB.
func (v *Result) peak(pool func(Pools) uint64) float64 {
	most := uint64(0)
	for _, sw := range v.Pools {
		most = max(most, pool(sw))
	}
	return float64(most) / 1e3
}

// values returns the scenario's measures of a play. If simulated is set it returns only measures that a preview
// has too.
func (s *Scenario) values(v *Result, simulated bool) (list []experiment.Value) {
	for _, m := range s.Measures {
		if by := meters[m.What]; by.simulated || !simulated {
			m.Group = cmp.Or(m.Group, s.Victim)
			list = append(list, experiment.Value{Name: m.Name, Value: by.of(v, m), Unit: by.unit})
		}
	}
	return list
}

// claims reads the scenario's claims, which have the form of an experiment's.
func (s *Scenario) claims() (*experiment.File, error) {
	text, err := yaml.Marshal(map[string]*yaml.Node{"claims": &s.Claims})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range s.Measures {
		names = append(names, m.Name)
	}
	return experiment.ReadClaims(s.Name, text, s.offers, names)
}

// judgePolicies checks that no lossless packet was dropped, except with oversubscribed headroom. It also checks
// the claims whose variants were all played.
func judgePolicies(r *Report) {
	if r.scenario.Lossless {
		r.noLosslessDrop("oversubscribed")
	}
	claims, err := r.scenario.claims()
	if err != nil {
		panic(err) // they are built in
	}
	claims.Claims = slices.DeleteFunc(claims.Claims, func(c experiment.Claim) bool {
		return slices.ContainsFunc(c.Variants(), func(name string) bool { return r.Variant(name) == nil })
	})
	var of experiment.Report
	for _, v := range r.Variants {
		of.Outcomes = append(of.Outcomes, &experiment.Outcome{Variant: v.Variant, Measures: v.Measures})
	}
	for _, j := range claims.Judge(&of) {
		r.check(j.Verdict == experiment.Agrees, j.Claim, "%s, want %s", j.OursText(), j.Paper)
	}
}

// measuresTable prints a line for each play and a column for each measure.
func measuresTable(w io.Writer, r *Report) {
	fmt.Fprint(w, "variant\t")
	for _, m := range r.scenario.Measures {
		fmt.Fprintf(w, "%s\t", withUnit(m.Name, meters[m.What].unit))
	}
	for _, v := range r.Variants {
		fmt.Fprintf(w, "\n%s\t", v.name())
		for _, m := range v.Measures {
			fmt.Fprintf(w, "%s\t", m.Text())
		}
	}
	fmt.Fprintln(w)
}

// withUnit returns a measure's name with its unit.
func withUnit(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + " " + unit
}
