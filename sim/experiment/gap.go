package experiment

import (
	"math"
	"slices"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
)

// checkGaps makes sure that there are the variants that gaps are to.
func (f *File) checkGaps(root *yamlnode.Map) {
	for _, p := range f.Plans {
		for _, me := range p.Measures {
			if me.over != "" && !slices.ContainsFunc(f.Plans, func(q *Plan) bool { return q.Variant == me.over }) {
				root.Fault("measures", "has %q over %q, want a variant", me.Name, me.over)
			}
		}
	}
}

// timesOf returns the FCT of each flow that a measure is about, in µs in the order in which they were
// made, 0 of one that has not ended.
func (r *run) timesOf(me *Measure) (times []float64) {
	r.flows(me, func(f *sim.Result, _ int) { times = append(times, f.FCT.Micros()) })
	return times
}

// fillGaps gives measures of a gap their values, once the runs that they are over are there, too: the sum
// of each flow's |FCT ÷ its FCT there − 1| (PrioPlus, §6.3). There is none where a flow has not ended.
func (r *Report) fillGaps() {
	_, of := r.byVariant()
	for _, o := range r.Outcomes {
		for i := range o.Measures {
			v := &o.Measures[i]
			at := slices.IndexFunc(of[v.Over], func(other *Outcome) bool { return other.Seed == o.Seed })
			if v.Over == "" || at < 0 {
				continue
			}
			v.Value = gap(v.Times, of[v.Over][at].times(v.Name))
		}
	}
}

// times returns what a measure of a gap has of each flow.
func (o *Outcome) times(measure string) []float64 {
	if i := slices.IndexFunc(o.Measures, func(v Value) bool { return v.Name == measure }); i >= 0 {
		return o.Measures[i].Times
	}
	return nil
}

func gap(times, over []float64) (sum float64) {
	if len(times) != len(over) || slices.Contains(times, 0) || slices.Contains(over, 0) {
		return math.NaN()
	}
	for i, t := range times {
		sum += math.Abs(t/over[i] - 1)
	}
	return sum
}
