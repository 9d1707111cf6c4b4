package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// FlowRecord is one flow of a run, as flows-RUN.csv has it. FCT is 0 for one that has not
// ended.
type FlowRecord struct {
	Group, Src, Dst   string
	Class             uint8
	Job               int
	Size              int64   // B
	Weight            float64 // at its start
	Start, FCT, Ideal time
	Retransmits       uint64 // of a flow that has ended
	CNPs              uint32
}

func (r *run) flowRecords(g *topo.Graph) (out []FlowRecord) {
	for i, f := range r.sim.Results() {
		out = append(out, FlowRecord{
			Group: r.plan.Groups[f.Spec.Group], Src: g.Names[f.Spec.Src], Dst: g.Names[f.Spec.Dst], Class: f.Spec.Class,
			Job: f.Spec.Job, Size: int64(f.Spec.Size), Weight: f.Spec.Weight, Start: r.sim.StartOf(i), FCT: f.FCT, Ideal: f.Ideal,
			Retransmits: f.Stats.Retransmits, CNPs: f.CNPs,
		})
	}
	return out
}

func flowRows(flows []FlowRecord) [][]string {
	rows := [][]string{{"group", "job", "src", "dst", "class", "weight", "size_b", "start_us", "fct_us", "ideal_us", "slowdown", "retransmits", "cnps"}}
	for _, f := range flows {
		fct, slowdown := "", ""
		if f.FCT > 0 {
			fct, slowdown = num(f.FCT.Micros()), num(slowdownOf(&sim.Result{FCT: f.FCT, Ideal: f.Ideal}))
		}
		rows = append(rows, []string{
			f.Group, strconv.Itoa(f.Job), f.Src, f.Dst, strconv.Itoa(int(f.Class)), num(f.Weight), strconv.FormatInt(f.Size, 10),
			num(f.Start.Micros()), fct, num(f.Ideal.Micros()), slowdown, strconv.FormatUint(f.Retransmits, 10), strconv.FormatUint(uint64(f.CNPs), 10),
		})
	}
	return rows
}

// OfFlows returns a statistic (mean, p99 and so on) of the flows of a list that have ended: of their FCT, in µs, or
// of their slowdown, where what says so. sizes is a range such as 10KB-100KB, "" for all. It is the number that
// a measure with these keys has, NaN without such a flow.
func OfFlows(flows []FlowRecord, what, sizes, stat string) (float64, error) {
	within, of := everySize, fctOf
	if sizes != "" {
		var err error
		if within, err = parseSizes(sizes); err != nil {
			return 0, fmt.Errorf("sizes: %q: %w", sizes, err)
		}
	}
	if what == "slowdown" {
		of = slowdownOf
	}
	var all []float64
	for _, f := range flows {
		if f.FCT > 0 && within.has(units.Bytes(f.Size)) {
			all = append(all, of(&sim.Result{FCT: f.FCT, Ideal: f.Ideal}))
		}
	}
	slices.Sort(all)
	return statistic(all, stat), nil
}

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
