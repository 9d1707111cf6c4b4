package workload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

// Chain starts flows when others have ended. It implements sim.Driver for one run and
// is owned by it.
type Chain struct {
	stages []stage // by tag; tag 0 means none
	jobs   []int   // flows of each job; job 0 means none
	err    error
}

// stage is a set of flows that start together, after a pause, once all stages that it waits for
// have ended.
type stage struct {
	left  int // flows that have not ended
	waits int // stages that have not ended
	pause units.Time
	flows []sim.FlowSpec
	then  []int // stages that wait for this one
}

// NewChain returns a driver without stages.
func NewChain() *Chain { return &Chain{stages: make([]stage, 1), jobs: make([]int, 1)} }

// Done implements sim.Driver.
func (c *Chain) Done(s *sim.Sim, f *sim.FlowSpec) {
	if f.Tag == 0 {
		return
	}
	done := &c.stages[f.Tag]
	if done.left--; done.left > 0 {
		return
	}
	for _, t := range done.then {
		next := &c.stages[t]
		if next.waits--; next.waits > 0 {
			continue
		}
		if err := next.start(s); err != nil && c.err == nil {
			c.err = err
		}
	}
}

// start starts the flows of a stage. Each flow's Start is relative to now.
func (st *stage) start(s *sim.Sim) error {
	var later []sim.FlowSpec
	for i := range st.flows {
		f := &st.flows[i]
		f.Start += s.Now() + st.pause
		if f.Stop > 0 {
			f.Stop += s.Now() + st.pause
		}
		if f.Start > s.Now() {
			later = append(later, *f)
		} else if err := s.Start(f); err != nil {
			return err
		}
	}
	if len(later) == 0 {
		return nil
	}
	return s.AddFlows(later)
}

// Left returns the number of stages that have not ended.
func (c *Chain) Left() (n int) {
	for i := range c.stages {
		if c.stages[i].left > 0 {
			n++
		}
	}
	return n
}

// Tags returns the number of stages so far. Later stages have higher tags.
func (c *Chain) Tags() int { return len(c.stages) - 1 }

// Stage makes flows that have no stage yet one stage, which waits for the stages with the given tags
// and then for a pause. The flows' times count from there. Stages within it wait too if they wait for
// nothing else. It returns the flows that the caller must start, none if there are stages to wait for.
func (c *Chain) Stage(flows []sim.FlowSpec, first int, after []int, pause units.Time) []sim.FlowSpec {
	if c.Tags() == first && len(flows) > 0 { // plain flows
		c.stage(flows, nil, 0)
	}
	if len(after) == 0 {
		return flows
	}
	for t := first + 1; t < len(c.stages); t++ {
		st := &c.stages[t]
		if st.waits > 0 {
			continue
		}
		st.flows = nil
		for _, f := range flows {
			if f.Tag == t {
				st.flows = append(st.flows, f)
			}
		}
		st.waits, st.pause = len(after), pause
		for _, a := range after {
			c.stages[a].then = append(c.stages[a].then, t)
		}
	}
	return nil
}

// Held calls fn for the flows of each stage with a tag above first that wait for others.
func (c *Chain) Held(first int, fn func(flows []sim.FlowSpec)) {
	for t := first + 1; t < len(c.stages); t++ {
		fn(c.stages[t].flows)
	}
}

// Jobs renumbers the jobs of a generator's plain flows, which count from 1, so that no job of the
// chain has the same number.
func (c *Chain) Jobs(flows []sim.FlowSpec) {
	before := len(c.jobs) - 1
	for i := range flows {
		if f := &flows[i]; f.Job > 0 && f.Tag == 0 {
			f.Job += before
			for len(c.jobs) <= f.Job {
				c.jobs = append(c.jobs, 0)
			}
			c.jobs[f.Job]++
		}
	}
}

// FlowsOf returns the number of flows of a job, those that have yet to start included.
func (c *Chain) FlowsOf(job int) int { return c.jobs[job] }

// Err returns the first error of a flow that could not be started.
func (c *Chain) Err() error { return c.err }

// stage gives flows a tag of their own and returns it. They start when the stages of after have ended and a pause
// is over. If after is empty, the caller starts them.
func (c *Chain) stage(flows []sim.FlowSpec, after []int, pause units.Time) int {
	tag := len(c.stages)
	for i := range flows {
		flows[i].Tag = tag
	}
	st := stage{left: len(flows), waits: len(after), pause: pause}
	if len(after) > 0 {
		st.flows = flows
	}
	c.stages = append(c.stages, st)
	for _, a := range after {
		c.stages[a].then = append(c.stages[a].then, tag)
	}
	return tag
}

// job makes the flows of all steps one job.
func (c *Chain) job(steps ...[]sim.FlowSpec) {
	id := len(c.jobs)
	c.jobs = append(c.jobs, 0)
	for _, flows := range steps {
		for i := range flows {
			flows[i].Job = id
		}
		c.jobs[id] += len(flows)
	}
}

// Ring adds ring all-reduces over hosts, one after another, each a job. An all-reduce has 2(n − 1) steps. In each,
// every host sends 1/n of the data to the next host. A step begins when the previous one has ended at all hosts
// (Patarasuk and Yuan, JPDC 2009). The hosts compute between two all-reduces. Ring returns the first step's flows.
func (c *Chain) Ring(p *Pattern, rng *rand.Rand, hosts []int, data units.Bytes, rounds int, compute, start units.Time) ([]sim.FlowSpec, error) {
	n := len(hosts)
	if n < 2 || rounds < 1 || data < units.Bytes(n) {
		return nil, fmt.Errorf("ring of %d hosts, %d rounds, %v: want at least 2 hosts, 1 round and a byte per host", n, rounds, data)
	}
	chunk := (data + units.Bytes(n) - 1) / units.Bytes(n)
	per := 2 * (n - 1)
	steps := make([][]sim.FlowSpec, rounds*per)
	for i := range steps {
		for j, h := range hosts {
			steps[i] = append(steps[i], p.Flow(rng, h, hosts[(j+1)%n], chunk, 0))
		}
	}
	var before []int
	for i := range steps {
		if i%per == 0 {
			c.job(steps[i : i+per]...)
		}
		pause := compute
		if i%per > 0 || i == 0 {
			pause = 0
		}
		before = []int{c.stage(steps[i], before, pause)}
	}
	return startAt(steps[0], start), nil
}

// startAt sets when flows start.
func startAt(flows []sim.FlowSpec, start units.Time) []sim.FlowSpec {
	for i := range flows {
		flows[i].Start = start
	}
	return flows
}

// Shuffles describes the coflows of a Poisson process.
type Shuffles struct {
	Hosts []int
	// The numbers of mappers and reducers are drawn uniformly from Mappers and Reducers for each coflow. The hosts
	// are drawn without repetition. Each mapper sends the same size to each reducer.
	Mappers, Reducers []int
	Sizes             *Sizes
	Whole             bool // a size is the sum of the whole coflow, not of each flow
	Gap               units.Time
	Start, End        units.Time
}

// Flows returns the number of flows of a coflow if all coflows have the same number, else 0.
func (s *Shuffles) Flows() int {
	m, r := s.Mappers, s.Reducers
	if len(m) == 0 || len(r) == 0 || slices.Min(m) != slices.Max(m) || slices.Min(r) != slices.Max(r) {
		return 0
	}
	return m[0] * r[0]
}

// GapOf returns the mean gap at which the coflows load the hosts' line rates to the given part. factor is the
// number of bytes on the wire per byte of payload. The gap is at least a picosecond.
func (s *Shuffles) GapOf(load float64, rate units.Rate, factor float64) units.Time {
	mean := s.Sizes.Mean() * factor
	if !s.Whole {
		mean *= average(s.Mappers) * average(s.Reducers)
	}
	return max(1, units.Time(mean*8*float64(units.Second)/(load*float64(rate)*float64(len(s.Hosts)))))
}

// Coflows draws shuffles. Each is a job; jobs count from 1. A pattern's ranks use the size of the whole coflow.
func (p *Pattern) Coflows(rng *rand.Rand, s Shuffles) ([]sim.FlowSpec, error) {
	if len(s.Mappers) == 0 || len(s.Reducers) == 0 || slices.Min(s.Mappers) < 1 || slices.Min(s.Reducers) < 1 || slices.Max(s.Mappers)+slices.Max(s.Reducers) > len(s.Hosts) || s.Gap <= 0 {
		return nil, fmt.Errorf("coflows of %v mappers and %v reducers every %v: want at least 1 each, no more than the %d hosts together, and a gap above 0", s.Mappers, s.Reducers, s.Gap, len(s.Hosts))
	}
	var flows []sim.FlowSpec
	at := float64(s.Start)
	for job := 1; ; job++ {
		at += rng.ExpFloat64() * float64(s.Gap)
		if at >= float64(s.End) {
			return flows, nil
		}
		if len(flows) > maxFlows {
			return nil, fmt.Errorf("coflows: more than %d flows", maxFlows)
		}
		order := rng.Perm(len(s.Hosts))
		mappers, reducers := drawn(rng, s.Mappers), drawn(rng, s.Reducers)
		width := units.Bytes(mappers * reducers)
		size := s.Sizes.Draw(rng)
		if s.Whole {
			size = max((size+width-1)/width, 1)
		}
		p := p.rank(size * width)
		for _, m := range order[:mappers] {
			for _, r := range order[mappers : mappers+reducers] {
				f := p.Flow(rng, s.Hosts[m], s.Hosts[r], size, units.Time(at))
				f.Job = job
				flows = append(flows, f)
			}
		}
	}
}

// drawn returns one of some numbers. With a single number it draws nothing from the generator.
func drawn(rng *rand.Rand, of []int) int {
	if len(of) == 1 {
		return of[0]
	}
	return of[rng.IntN(len(of))]
}

func average(of []int) float64 {
	sum := 0.0
	for _, n := range of {
		sum += float64(n)
	}
	return sum / float64(max(len(of), 1))
}

// Stage is one shuffle of a job. It starts when all stages of After, which come before it in the list, have ended
// and its hosts have computed. Its hosts then send Bytes in all to the hosts of the next stage.
type Stage struct {
	Name    string
	Bytes   units.Bytes
	After   []int
	Compute units.Time
	Width   int     // number of sending hosts; 0 means the job's width
	Weight  float64 // multiplies the job's weight; 0 means 1
}

// Weigh sets the weight of each stage to the work that is left in the job, from the start of the stage on (Söze,
// §5.1.1). This is the number of stages on the longest path, or with bytes the most bytes on any path, in
// multiples of the bytes of the job's last stage.
func Weigh(stages []Stage, bytes bool) error {
	longest := make([]float64, len(stages))
	for i := len(stages) - 1; i >= 0; i-- {
		own := 1.0
		if bytes {
			own = float64(stages[i].Bytes) / float64(stages[len(stages)-1].Bytes)
		}
		longest[i] += own // all later stages have been added by now
		stages[i].Weight = longest[i]
		for _, a := range stages[i].After {
			if a < 0 || a >= i {
				return fmt.Errorf("stage %d (%s) waits for stage %d: want one before it", i, stages[i].Name, a)
			}
			longest[a] = max(longest[a], longest[i])
		}
	}
	return nil
}

// Queries are the TPC-H queries of data/tpch.dag.
type Queries struct {
	Tables  map[string]struct{ Rows, Bytes int64 } // rows at scale factor 1, and bytes of each
	Queries [][]string                             // the tables that q1, q2, … join
}

// TPCH returns the 22 queries; an error is a fault of the embedded file.
func TPCH() (*Queries, error) {
	q := &Queries{}
	text, err := data.ReadFile("data/tpch.dag")
	return q, cmp.Or(err, yaml.Unmarshal(text, q))
}

// DAG returns the stages of a query at a scale factor. Every table reference is scanned and sent whole: there is
// no projection and no predicate. A left-deep tree joins them in order. A join starts when both its inputs have
// arrived. It sends as much as the smaller input, as if each row of that input found one partner and the partner's
// bytes were dropped.
func (q *Queries) DAG(name string, scale float64) ([]Stage, error) {
	var names []string
	for i := range q.Queries {
		names = append(names, fmt.Sprintf("q%d", i+1))
	}
	at := slices.Index(names, name)
	if at < 0 {
		return nil, fmt.Errorf("no query %q, want one of %s", name, strings.Join(names, ", "))
	}
	tables := q.Queries[at]
	if !(scale > 0 && scale <= 1e6) {
		return nil, fmt.Errorf("scale factor %g: want more than 0, at most 1e6", scale)
	}
	var stages []Stage
	size := func(t string) units.Bytes {
		return max(1, units.Bytes(float64(q.Tables[t].Rows*q.Tables[t].Bytes)*scale))
	}
	for _, t := range tables {
		stages = append(stages, Stage{Name: "scan " + t, Bytes: size(t)})
	}
	left := 0
	for i := 1; i < len(tables); i++ {
		stages = append(stages, Stage{
			Name: "join " + tables[i], Bytes: min(stages[left].Bytes, stages[i].Bytes), After: []int{left, i},
		})
		left = len(stages) - 1
	}
	return stages, nil
}

// DAG adds a job. Every stage runs on width hosts drawn for it. Each of these hosts sends an equal part to each
// host of the first stage that waits for this one. A stage that no other waits for sends its result to as many
// newly drawn hosts. Parts that stay on their host are not sent. DAG returns the flows of the stages that wait for
// none.
func (c *Chain) DAG(p *Pattern, rng *rand.Rand, hosts []int, stages []Stage, width int, start units.Time) ([]sim.FlowSpec, error) {
	if width < 1 || width > len(hosts) || len(hosts) < 2 || len(stages) == 0 {
		return nil, fmt.Errorf("job of %d stages with %d of %d hosts each: want at least one stage, one host per stage and two hosts", len(stages), width, len(hosts))
	}
	next := make([]int, len(stages))
	for i := len(stages) - 1; i >= 0; i-- {
		st := &stages[i]
		if w := cmp.Or(st.Width, width); w > len(hosts) {
			return nil, fmt.Errorf("stage %d (%s) of %d hosts: want at most %d", i, st.Name, w, len(hosts))
		}
		for _, a := range st.After {
			if a < 0 || a >= i {
				return nil, fmt.Errorf("stage %d (%s) waits for stage %d: want one before it", i, st.Name, a)
			}
			next[a] = i
		}
	}
	from := make([][]int, len(stages))
	all := make([][]sim.FlowSpec, len(stages))
	for i := len(stages) - 1; i >= 0; i-- { // the hosts of the stages that wait are known by now
		width := cmp.Or(stages[i].Width, width)
		to := from[next[i]]
		if next[i] == 0 {
			to = rng.Perm(len(hosts))[:width]
		}
		for len(all[i]) == 0 { // a single sender may have drawn the only receiver
			from[i] = rng.Perm(len(hosts))[:width]
			all[i] = stages[i].flows(p, rng, hosts, from[i], to)
		}
	}
	tags := make([]int, len(stages))
	var first []sim.FlowSpec
	for i, st := range stages {
		var after []int
		for _, a := range st.After {
			after = append(after, tags[a])
		}
		tags[i] = c.stage(all[i], after, st.Compute)
	}
	c.job(all...)
	for i, st := range stages {
		if len(st.After) == 0 {
			first = append(first, startAt(all[i], start+st.Compute)...)
		}
	}
	return first, nil
}

// flows returns the flows of a stage from some hosts to others.
func (st *Stage) flows(p *Pattern, rng *rand.Rand, hosts, from, to []int) (flows []sim.FlowSpec) {
	part := max(1, st.Bytes/units.Bytes(len(from)*len(to)))
	for _, a := range from {
		for _, b := range to {
			if a != b {
				f := p.Flow(rng, hosts[a], hosts[b], part, 0)
				if st.Weight > 0 {
					f.Weight = cmp.Or(f.Weight, 1) * st.Weight
				}
				flows = append(flows, f)
			}
		}
	}
	return flows
}
