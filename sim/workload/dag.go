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

// Stage is one shuffle of a job: so many bytes from its hosts to those of the next stage,
// once all stages of After, which come before it in the list, have ended and its hosts have
// computed.
type Stage struct {
	Name    string
	Bytes   units.Bytes
	After   []int
	Compute units.Time
	Width   int     // hosts that send, and that receive; 0 for the job's
	Weight  float64 // of its flows, times the job's; 0 stands for 1
}

// Weigh sets the weight of each stage by the work left in the job from it on, itself included (Söze,
// §5.1.1): either the number of stages on the longest path, or the bytes of the path with the most, in
// parts of the job's last stage.
func Weigh(stages []Stage, bytes bool) error {
	longest := make([]float64, len(stages))
	for i := len(stages) - 1; i >= 0; i-- {
		own := 1.0
		if bytes {
			own = float64(stages[i].Bytes) / float64(stages[len(stages)-1].Bytes)
		}
		longest[i] += own // what comes after is known by now
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

// DAG returns the stages of a query at a scale factor. Every table reference is scanned and
// shipped whole: there is no projection and no predicate. A left-deep tree joins them in
// order; a join starts when both its inputs are there and ships as much as the smaller of
// them, as when each of its rows finds one partner and the other's bytes are dropped.
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

// DAG adds a job: every stage runs on width hosts drawn for it, each of which ships an equal
// part to each host of the stage that waits for it, the first if there are several, or of as many
// hosts drawn for the result; parts that stay on their host are not shipped. It returns the flows of
// the stages that wait for none.
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
	for i := len(stages) - 1; i >= 0; i-- { // who waits is placed by now
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

// flows returns what a stage ships between some of the hosts.
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
