package experiment

import (
	"math"
	"slices"
	"strings"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/yamlnode"
)

// Measure is one number that a run is judged by, beside what the paper says.
type Measure struct {
	Name  string
	Paper string
	what  string
	stat  string
	group int // -1 for all
	queue int
	from  time
	to    time
}

// unitOf gives the unit of what is measured.
func unitOf(what string) string {
	switch what {
	case "goodput":
		return "Gb/s"
	case "fct", "pause_time", "deadlock", "makespan":
		return "µs"
	case "queue":
		return "KB"
	}
	return ""
}

var stats = []string{"mean", "min", "p50", "p95", "p99", "p999", "max"}

func (p *Plan) decodeMeasure(m *yamlnode.Map) Measure {
	m.Need("name", "what")
	me := Measure{
		Name: m.Text("name", ""), Paper: m.Text("paper", ""), group: -1,
		what: m.OneOf("what", "", "goodput", "fct", "slowdown", "queue", "pauses", "pause_time", "drops", "marks", "cnps", "done", "deadlock", "retransmits", "makespan"),
	}
	if m.Has("group") {
		me.group = slices.Index(p.Groups, m.Text("group", ""))
		if me.group < 0 {
			m.Fault("group", "is %q, want one of %s", m.Text("group", ""), strings.Join(p.Groups, ", "))
		}
	}
	switch me.what {
	case "goodput":
		m.Need("group")
		me.from, me.to = m.Time("from", 0, 0, maxTime), m.Time("to", p.Until, 0, maxTime)
	case "queue":
		m.Need("queue")
		name := m.Text("queue", "")
		me.queue = slices.IndexFunc(p.Queues, func(q queueRef) bool { return q.name == name })
		if me.queue < 0 {
			m.Fault("queue", "is %q, want the name of one under queues", name)
			me.queue = 0
		}
		me.stat = m.OneOf("stat", "mean", stats...)
		me.from, me.to = m.Time("from", 0, 0, maxTime), m.Time("to", p.Until, 0, maxTime)
	case "fct", "slowdown":
		me.stat = m.OneOf("stat", "mean", stats...)
	}
	if me.to < me.from || me.to > p.Until {
		m.Fault("to", "is %v, want a time from %v to the end of the run, %v", me.to, me.from, p.Until)
	}
	m.Done()
	return me
}

// Value is what a measure came to in one run. NaN, printed as "–", stands for no value.
type Value struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Paper string  `json:"paper,omitempty"`
}

func (r *run) measure() []Value {
	st := r.sim.Stats()
	var out []Value
	for i, me := range r.plan.Measures {
		v := Value{Name: me.Name, Unit: unitOf(me.what), Paper: me.Paper}
		switch me.what {
		case "goodput":
			v.Value = float64(r.span[i]) * 8 / (me.to - me.from).Seconds() / 1e9
		case "queue":
			v.Value = stat(r.window(me), me.stat)
		case "fct":
			v.Value = stat(r.times(me.group, fctOf), me.stat)
		case "slowdown":
			v.Value = stat(r.times(me.group, slowdownOf), me.stat)
		case "pauses":
			v.Value = float64(st.PausesSent)
		case "pause_time":
			v.Value = r.sim.PauseTime().Micros()
		case "drops":
			v.Value = float64(st.Dropped)
		case "marks":
			v.Value = float64(st.Marks)
		case "cnps":
			v.Value = float64(st.CNPs)
		case "retransmits":
			v.Value = float64(st.DataSent - st.DataDelivered)
		case "done":
			v.Value = float64(len(r.times(me.group, fctOf)))
		case "makespan":
			v.Value = r.makespan(me.group)
		case "deadlock":
			v.Value = math.NaN()
			if d := r.sim.FirstDeadlock(); d != nil {
				v.Value = d.Since.Micros()
			}
		}
		out = append(out, v)
	}
	return out
}

func fctOf(r *fabric.Result) float64      { return r.FCT.Micros() }
func slowdownOf(r *fabric.Result) float64 { return float64(r.FCT) / float64(r.Ideal) }

// times returns a number of each flow of a group that has ended, in order of size.
func (r *run) times(group int, of func(*fabric.Result) float64) []float64 {
	var out []float64
	results := r.sim.Results()
	for i := range results {
		if f := &results[i]; f.FCT > 0 && (group < 0 || f.Spec.Group == group) {
			out = append(out, of(f))
		}
	}
	slices.Sort(out)
	return out
}

// window returns the samples of a measure's queue within its times, in order of size.
func (r *run) window(me Measure) []float64 {
	var out []float64
	for i, t := range r.out.Series.Time {
		if t >= me.from.Micros() && t <= me.to.Micros() {
			out = append(out, r.out.Series.Queue[me.queue][i])
		}
	}
	slices.Sort(out)
	return out
}

// stat returns a statistic of sorted numbers, NaN of none.
func stat(sorted []float64, name string) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	switch name {
	case "mean":
		return mean(sorted)
	case "min":
		return sorted[0]
	case "max":
		return sorted[len(sorted)-1]
	}
	return quantile(sorted, map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}[name])
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// quantile is the nearest-rank quantile of sorted numbers, of which there is at least one.
func quantile(sorted []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
