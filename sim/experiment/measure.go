package experiment

import (
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

// Measure is one number that is measured in each run.
type Measure struct {
	Name  string
	Paper string
	meter *meter
	stat  string
	cdf   bool
	group int // -1 for all
	queue int
	gauge int
	nodes []int // switches
	hosts []int // nil for all nodes
	port  int   // index in Plan.ports, -1 for all
	class int   // -1 for all
	from  time
	to    time
	span  bool // from or to is given
	unit  string
	scale float64 // number of units of an occupancy in one unit
	sizes sizeRange
	every time
	near  float64 // allowed distance from the max-min fair rate, as a fraction of it
	over  string  // the variant that a gap compares with
}

// keys are the keys that a meter reads.
type keys uint32

const (
	keyGroup keys = 1 << iota
	needGroup
	keySpan   // from and to
	keyStart  // from and to: only flows that start between them count
	keySizes  // a range of flow sizes
	keyStat   // stat and cdf
	keyPort   // a port and a class
	needPort  // a port
	needQueue // a queue
	needGauge // a gauge
	needSwitch
	keyHosts  // ingress ports, by the node they lead to
	keyClass  // without a port
	needEvery // every, how long a sample is
	needNear  // within
	needLinks // no key; the run samples its links
	needOver  // over, a variant
	keyGrowth // no key; the value is a growth over a time
)

// meter reads one kind of measure.
type meter struct {
	unit string
	keys keys
	// start prepares a run for a measure before the run begins, for example by scheduling samples.
	start func(r *run, me *Measure) (reading, error)
}

// reading returns the value of a measure at the end of its run. If the value is a statistic, quantile gives the
// distribution; otherwise it is nil.
type reading func() (value float64, quantile func(q float64) float64)

var stats = []string{"mean", "min", "p1", "p5", "p25", "p50", "p75", "p95", "p99", "p999", "max"}

func (p *Plan) decodeMeasure(m *yamlnode.Map) Measure {
	m.Need("name", "what")
	m.Computed("to", "every")
	me := Measure{Name: m.Text("name", ""), Paper: m.Text("paper", ""), group: -1, port: -1, class: -1, to: p.Until, stat: "max"}
	what := m.OneOf("what", "", slices.Sorted(maps.Keys(meters))...)
	me.meter = meters[what]
	if me.meter == nil {
		me.meter = &meter{}
		m.AllowUnknown()
		return me
	}
	me.unit, me.scale = me.meter.unit, 1e3
	has := func(k keys) bool { return me.meter.keys&k != 0 }
	if has(needGroup) {
		m.Need("group")
	}
	if has(keyGroup|needGroup) && m.Has("group") {
		me.group = p.groupNamed(m)
	}
	if has(needQueue) {
		me.queue = named(m, "queue", "queues", p.Queues, func(q queueRef) string { return q.name })
	}
	if has(needGauge) {
		me.gauge = named(m, "gauge", "gauges", p.Gauges, func(g gaugeRef) string { return g.name })
		if me.gauge < len(p.Gauges) && p.Gauges[me.gauge].kind != nil {
			me.unit, me.scale = p.Gauges[me.gauge].kind.unit, p.Gauges[me.gauge].kind.scale
		}
	}
	if has(keyPort | needPort) {
		me.port, me.class = p.portOf(m, has(needPort))
	}
	if has(keyClass) {
		me.class = m.Int("class", -1, 0, sim.NumClasses-1)
	}
	if has(keyHosts) {
		hosts, err := hostSet(p.Graph, m.Text("hosts", "all"))
		if err != nil {
			m.Fault("hosts", "%v", err)
		}
		if me.hosts = hosts; !m.Has("hosts") {
			me.hosts = nil
		}
	}
	if has(needSwitch) {
		me.nodes = p.switches(m)
		p.needPools(m)
	}
	if has(keySpan | keyStart) {
		me.from, me.to = m.Time("from", 0, 0, maxTime), m.Time("to", p.Until, 0, maxTime)
		me.span = m.Has("from") || m.Has("to")
		if me.to < me.from || me.to > p.Until || me.to == me.from && has(keyGrowth) && me.span {
			m.Fault("to", "is %v, want a time from %v to the end of the run, %v", me.to, me.from, p.Until)
		}
	}
	if has(keySizes) {
		me.sizes = yamlnode.Scalar(m, "sizes", everySize, "a range such as 0-100KB, 100KB-1MB or 1MB-", parseSizes)
	}
	if has(keyStat) {
		me.stat, me.cdf = m.OneOf("stat", "mean", stats...), m.Bool("cdf", false)
	}
	if has(needEvery) {
		every := p.Interval
		if !has(needNear) && what != "unfairness" {
			every = me.to - me.from
		}
		me.every = m.Time("every", every, units.Nanosecond, maxTime)
		if me.every == 0 || (me.to-me.from)/max(me.every, 1) > 1_000_000 {
			m.Fault("every", "is %v, want more than 0s and at most 1000000 samples from %v to %v", me.every, me.from, me.to)
		}
	}
	if has(needOver) {
		m.Need("over")
		me.over = m.Text("over", "")
	}
	if has(needNear) {
		me.near = m.Float("within", 5, 0.01, 100) / 100
	}
	if (what == "takeover" || what == "recovery") && p.Interval == 0 {
		m.Fault("what", "is %s, which needs run.interval: it looks at the samples", what)
	}
	return me
}

// groupNamed returns the number of a group. The group must have flows.
func (p *Plan) groupNamed(m *yamlnode.Map) int {
	name := m.Text("group", "")
	i := slices.Index(p.Groups, name)
	if i < 0 && name != "" {
		m.Fault("group", "is %q, want one of %s", name, strings.Join(p.Groups, ", "))
	}
	return i
}

// named reads a key that names an entry of a list.
func named[T any](m *yamlnode.Map, key, list string, of []T, name func(T) string) int {
	m.Need(key)
	want := m.Text(key, "")
	i := slices.IndexFunc(of, func(x T) bool { return name(x) == want })
	if i < 0 && want != "" {
		m.Fault(key, "is %q, want the name of one under %s", want, list)
	}
	return max(i, 0)
}

// sizeRange is a range of sizes. It includes low and excludes high.
type sizeRange struct{ low, high units.Bytes }

var everySize = sizeRange{0, math.MaxInt64}

func (s sizeRange) has(n units.Bytes) bool { return s.low <= n && n < s.high }

// parseSizes reads "LOW-HIGH". Either number may be left out, and LOW may be 0.
func parseSizes(text string) (sizeRange, error) {
	low, high, ok := strings.Cut(text, "-")
	s := everySize
	var err error
	if low != "" && low != "0" {
		s.low, err = units.ParseBytes(low)
	}
	if high != "" && err == nil {
		s.high, err = units.ParseBytes(high)
	}
	if !ok || err != nil || s.low >= s.high || low == "" && high == "" {
		return s, yamlnode.ErrNotAllowed
	}
	return s, nil
}

// Value is the value of a measure in one run. NaN means that there is no value.
type Value struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Paper string  `json:"paper,omitempty"`
	// Quantiles are the quantiles at 0, 1, … 100 %, if the file asks for cdf.
	Quantiles []float64 `json:"quantiles,omitempty"`
	// Times are the completion times of the flows, in µs, if the value is a gap. Over is the variant to compare
	// with.
	Times []float64 `json:"times_us,omitempty"`
	Over  string    `json:"over,omitempty"`
}

// prepareMeasures starts the meters of all measures.
func (r *run) prepareMeasures() error {
	if r.plan.perLink || slices.ContainsFunc(r.plan.Measures, func(m Measure) bool { return m.meter.keys&needLinks != 0 }) {
		r.followLinks()
	}
	for i := range r.plan.Measures {
		me := &r.plan.Measures[i]
		read, err := me.meter.start(r, me)
		if err != nil {
			return err
		}
		r.readings = append(r.readings, read)
	}
	return nil
}

func (r *run) measure() (out []Value) {
	for i := range r.plan.Measures {
		me := &r.plan.Measures[i]
		v := Value{Name: me.Name, Unit: me.unit, Paper: me.Paper, Over: me.over}
		var at func(q float64) float64
		if v.Value, at = r.readings[i](); me.cdf && !math.IsNaN(v.Value) {
			v.Quantiles = percentiles(at)
		}
		if me.over != "" {
			v.Times = r.timesOf(me)
		}
		out = append(out, v)
	}
	return out
}

// percentiles returns the quantiles at 0, 1, … 100 %.
func percentiles(at func(q float64) float64) []float64 {
	out := make([]float64, 101)
	for i := range out {
		out[i] = at(float64(i) / 100)
	}
	return out
}

// statistic returns a statistic of sorted numbers, or NaN if there are none.
func statistic(sorted []float64, name string) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	if name == "mean" {
		return stat.Mean(sorted, nil)
	}
	return quantile(sorted, quantiles[name])
}

// quantiles has the statistics other than mean and sum.
var quantiles = map[string]float64{
	"min": 0, "p1": 0.01, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1,
}

// quantile returns the nearest-rank quantile of sorted numbers. There must be at least one.
func quantile(sorted []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
