package experiment

import (
	"fmt"
	"slices"
	"strconv"

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

func (r *run) flowRecords(g *topo.Graph) []FlowRecord {
	var out []FlowRecord
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
