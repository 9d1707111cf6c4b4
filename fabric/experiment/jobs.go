package experiment

import (
	"math"
	"math/rand/v2"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/workload"
	"github.com/headgate/headgate/fabric/yamlnode"
)

// tpch reads one TPC-H query as a job of dependent shuffles: "query: q5, scale: 0.1,
// width: 4" for its stages at a scale factor on four hosts each.
func (d *flowDecoder) tpch(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("query")
	hosts, width := d.hosts(m, "hosts", "all"), m.Int("width", 1, 1, 1<<12)
	name, scale := m.Text("query", ""), m.Float("scale", 1, 1e-6, 1e6)
	queries, err := workload.TPCH()
	if err != nil {
		m.Fault("query", "%v", err)
		return
	}
	stages, err := queries.DAG(name, scale)
	if err != nil {
		m.Fault("query", "%v", err)
		return
	}
	if width > len(hosts) {
		m.Fault("width", "is %d, want at most the number of hosts, %d", width, len(hosts))
	}
	d.add(func(rng *rand.Rand, chain *workload.Chain) ([]fabric.FlowSpec, error) {
		return chain.DAG(&pat, rng, hosts, stages, width, start)
	})
}

// makespan returns the µs from the start of a group's first flow to the end of its last, such
// as a job's completion time; NaN while flows of it,
// or stages of any job, are left.
func (r *run) makespan(group int) float64 {
	if r.chain.Left() > 0 {
		return math.NaN()
	}
	first, last := time(math.MaxInt64), time(0)
	results := r.sim.Results()
	for i := range results {
		if group >= 0 && results[i].Spec.Group != group {
			continue
		}
		if results[i].FCT == 0 {
			return math.NaN()
		}
		at := r.sim.StartOf(i)
		first, last = min(first, at), max(last, at+results[i].FCT)
	}
	if last == 0 {
		return math.NaN()
	}
	return (last - first).Micros()
}
