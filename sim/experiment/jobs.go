package experiment

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/workload"
	"github.com/headgate/headgate/units"
)

// tpch reads one TPC-H query as a job of dependent shuffles: "query: q5, scale: 0.1,
// width: 4" for its stages at a scale factor on four hosts each.
func (d *flowDecoder) tpch(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("query")
	name, scale := m.Text("query", ""), m.Float("scale", 1, 1e-6, 1e6)
	queries, err := workload.TPCH()
	if err != nil {
		m.Fault("query", "%v", err)
		return
	}
	stages, err := queries.DAG(name, scale)
	if err != nil {
		m.Fault("query", "%v", err)
	}
	compute := m.Time("compute", 0, 0, maxTime)
	for i := range stages {
		stages[i].Compute = compute
	}
	d.job(m, pat, stages, start)
}

// dag reads a job stage by stage.
func (d *flowDecoder) dag(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("stages")
	var stages []workload.Stage
	at := map[string]int{}
	m.Each("stages", func(m *yamlnode.Map) {
		m.Need("name", "size")
		st := workload.Stage{
			Name: m.Text("name", ""), Bytes: m.Bytes("size", 1, 1, maxBytes), Compute: m.Time("compute", 0, 0, maxTime),
			Width: m.Int("width", 0, 1, 1<<12), Weight: m.Float("weight", 1, 1e-9, 1e9),
		}
		for i, name := range m.Texts("after") {
			before, ok := at[name]
			if !ok {
				m.Fault(fmt.Sprintf("after[%d]", i), "is %q, want the name of a stage above", name)
			}
			st.After = append(st.After, before)
		}
		if _, twice := at[st.Name]; twice {
			m.Fault("name", "is %q, which another stage has", st.Name)
		}
		at[st.Name] = len(stages)
		stages = append(stages, st)
	})
	d.job(m, pat, stages, start)
}

// job reads the common keys of jobs with stages.
func (d *flowDecoder) job(m *yamlnode.Map, pat workload.Pattern, stages []workload.Stage, start time) {
	hosts, width := d.hosts(m, "hosts", "all"), m.Int("width", 1, 1, 1<<12)
	for i, st := range stages {
		if w := cmp.Or(st.Width, width); w > len(hosts) {
			m.Fault("width", "is %d at stage %d, want at most the number of hosts, %d", w, i, len(hosts))
			break
		}
	}
	if by := m.OneOf("weigh", "none", "none", "stages", "bytes"); by != "none" && len(stages) > 0 {
		if err := workload.Weigh(stages, by == "bytes"); err != nil {
			m.Fault("weigh", "%v", err)
		}
	}
	d.between(m, &pat, hosts, hosts)
	d.add(func(rng *rand.Rand, chain *workload.Chain) ([]sim.FlowSpec, error) {
		return chain.DAG(&pat, rng, hosts, stages, width, start)
	})
}

// makespan returns the time in µs from the start of a group's first flow to the end of its last, for example a
// job's completion time. It returns NaN if flows of the group, or stages of any job, have not ended.
func (r *run) makespan(me *Measure) float64 {
	if r.chain.Left() > 0 {
		return math.NaN()
	}
	first, last := time(math.MaxInt64), time(0)
	results := r.sim.Results()
	for i := range results {
		if me.group >= 0 && results[i].Spec.Group != me.group {
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

// job is the record of a job that has ended.
type job struct {
	first, last time // start of its first flow, end of its last
	size        units.Bytes
	ended       int
}

// ended returns the jobs of a group, such as coflows, that have ended and whose size is among the measure's sizes.
func (r *run) ended(me *Measure) (out []*job) {
	jobs := map[int]*job{}
	whole := *me
	whole.sizes, whole.span = everySize, false
	r.flows(&whole, func(f *sim.Result, i int) {
		if f.Spec.Job == 0 || f.FCT == 0 {
			return
		}
		j := jobs[f.Spec.Job]
		start := r.sim.StartOf(i)
		if j == nil {
			j = &job{first: start}
			jobs[f.Spec.Job] = j
		}
		j.first, j.last = min(j.first, start), max(j.last, start+f.FCT)
		j.size += f.Spec.Size
		j.ended++
	})
	for id, j := range jobs {
		if j.ended == r.chain.FlowsOf(id) && me.sizes.has(j.size) {
			out = append(out, j)
		}
	}
	return out
}

// jobTimes returns the completion times in µs of the jobs that started within a measure's time.
func (r *run) jobTimes(me *Measure) (out []float64) {
	for _, j := range r.ended(me) {
		if !me.span || me.from <= j.first && j.first < me.to {
			out = append(out, (j.last - j.first).Micros())
		}
	}
	return out
}

// jobsEnded returns the number of jobs that ended within a measure's time.
func (r *run) jobsEnded(me *Measure) (n float64) {
	for _, j := range r.ended(me) {
		if !me.span || me.from <= j.last && j.last < me.to {
			n++
		}
	}
	return n
}

// deadlinesMet returns the percentage of flows with a deadline that met it. Flows that still run and whose
// deadline has not passed do not count. It returns NaN if no flow counts.
func (r *run) deadlinesMet(me *Measure) float64 {
	met, all := 0.0, 0.0
	r.flows(me, func(f *sim.Result, i int) {
		if f.Deadline == 0 || f.FCT == 0 && r.sim.StartOf(i)+f.Deadline >= r.sim.Now() {
			return
		}
		all++
		if f.FCT > 0 && f.FCT <= f.Deadline {
			met++
		}
	})
	return 100 * met / all
}
