package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// Outcome is the result of one run. It does not depend on the machine or on other runs: equal plans and seeds give
// equal outcomes, byte for byte.
type Outcome struct {
	Experiment  string       `json:"experiment"`
	Variant     string       `json:"variant,omitempty"`
	Seed        uint64       `json:"seed"`
	Ended       int64        `json:"ended_ps"`
	Interrupted bool         `json:"interrupted,omitempty"`
	Measures    []Value      `json:"measures,omitempty"`
	Groups      []Group      `json:"groups"`
	Stats       sim.Stats    `json:"stats"`
	PauseTime   int64        `json:"pause_time_ps"`
	Deadlock    []string     `json:"deadlock,omitempty"` // the ports of the first deadlock
	Series      Series       `json:"series"`
	Links       []Link       `json:"links,omitempty"` // if the plan asks for them
	Flows       []FlowRecord `json:"-"`               // in order of start, if the plan asks for them

	work    sim.Work // how the run was shared between processors
	packets int      // peak number of packets in the fabric
}

// value returns a measure's value, NaN for a measure that the run does not have.
func (o *Outcome) value(measure string) float64 {
	if i := slices.IndexFunc(o.Measures, func(v Value) bool { return v.Name == measure }); i >= 0 {
		return o.Measures[i].Value
	}
	return math.NaN()
}

// Group summarises a group's flows. Times are of flows that have ended only.
type Group struct {
	Name      string    `json:"name"`
	Flows     int       `json:"flows"`
	Done      int       `json:"done"`
	Bytes     int64     `json:"bytes"`             // payload delivered
	Victims   int       `json:"victims,omitempty"` // if the plan asks for links
	FCT       Spread    `json:"fct_us"`
	Slowdown  Spread    `json:"slowdown"`
	Quantiles []float64 `json:"fct_quantiles_us,omitempty"` // at 0, 1, … 100 %
}

// Spread summarises a set of numbers; all fields are 0 if it is empty.
type Spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

func spread(sorted []float64) Spread {
	if len(sorted) == 0 {
		return Spread{}
	}
	return Spread{stat.Mean(sorted, nil), sorted[0], quantile(sorted, 0.5), quantile(sorted, 0.95), quantile(sorted, 0.99), sorted[len(sorted)-1]}
}

// Series are the samples of a run: one column per group and recorded queue.
type Series struct {
	Time    []float64   `json:"time_us"` // ends of the intervals
	Groups  []string    `json:"groups"`
	Goodput [][]float64 `json:"goodput_gbps"` // per group, over the interval
	Queues  []string    `json:"queues,omitempty"`
	Queue   [][]float64 `json:"queue_kb,omitempty"` // per queue, at the end of the interval
	Gauges  []string    `json:"gauges,omitempty"`   // names of gauges with their units
	Gauge   [][]float64 `json:"gauge,omitempty"`    // per gauge, at the end of the interval or over it
}

// Text prints the value: "–" for none, and "never" for an infinite time.
func (v Value) Text() string {
	switch {
	case math.IsNaN(v.Value):
		return "–"
	case math.IsInf(v.Value, 1):
		return "never"
	}
	return number(v.Value)
}

// MarshalJSON writes null for a value that is not finite, because JSON has no such numbers.
func (v Value) MarshalJSON() ([]byte, error) {
	type plain Value
	if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
		return json.Marshal(plain(v))
	}
	return json.Marshal(struct {
		plain
		Value *float64 `json:"value"`
	}{plain: plain(v)})
}

// UnmarshalJSON parses the JSON of MarshalJSON.
func (v *Value) UnmarshalJSON(text []byte) error {
	type plain Value
	p := struct {
		*plain
		Value *float64 `json:"value"`
	}{plain: (*plain)(v)}
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	v.Value = math.NaN()
	if p.Value != nil {
		v.Value = *p.Value
	}
	return nil
}

// Sample holds one number of each run of a variant. The runs differ by their seeds.
type Sample struct {
	Runs   int       // number of runs; len(Values) of them have a value: without a deadlock there is no onset
	Values []float64 // sorted
}

// SampleOf reads a number of each run of a variant.
func (r *Report) SampleOf(variant string, number func(*Outcome) float64) Sample {
	_, of := r.byVariant()
	return sample(of[variant], number)
}

// sample reads a number of each of some runs. NaN and infinities do not count as values.
func sample(runs []*Outcome, number func(*Outcome) float64) Sample {
	s := Sample{Runs: len(runs)}
	for _, o := range runs {
		if v := number(o); !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Values = append(s.Values, v)
		}
	}
	slices.Sort(s.Values)
	return s
}

// Mean returns the mean of the values, NaN when there is none.
func (s Sample) Mean() float64 { return statistic(s.Values, "mean") }

// Half returns half the width of the 95 % confidence interval of the mean (Student's t), NaN
// below two values.
func (s Sample) Half() float64 {
	n := float64(len(s.Values))
	if n < 2 {
		return math.NaN()
	}
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}
	return t.Quantile(0.975) * stat.StdErr(stat.StdDev(s.Values, nil), n)
}

// Quantile returns the nearest-rank quantile of the values, NaN when there is none.
func (s Sample) Quantile(q float64) float64 {
	if len(s.Values) == 0 {
		return math.NaN()
	}
	return quantile(s.Values, q)
}

// String prints the mean with its confidence interval and the lowest and highest value. If not all runs have a
// value it adds the number that do, for example "in 3 of 8".
func (s Sample) String() string {
	text := spreadText(s.Mean(), s.Half(), s.Quantile(0), s.Quantile(1))
	if len(s.Values) < s.Runs && s.Runs > 1 {
		text += fmt.Sprintf(" in %d of %d", len(s.Values), s.Runs)
	}
	return text
}

// spreadText prints a mean, half the width of its confidence interval (NaN or 0 for none) and the range of the
// values.
func spreadText(mean, half, low, high float64) string {
	switch {
	case math.IsNaN(mean):
		return "–"
	case low == high:
		return number(low)
	case half > 0:
		return fmt.Sprintf("%s ± %s (%s…%s)", number(mean), number(half), number(low), number(high))
	}
	return fmt.Sprintf("%s (%s…%s)", number(mean), number(low), number(high))
}

// Summary is the result of a variant's measure.
type Summary struct {
	Variant, Measure, Unit, Paper string
	Sample
}

// Summaries summarises each measure of each variant over the seeds, in their order.
func (r *Report) Summaries() (out []Summary) {
	names, of := r.byVariant()
	for _, n := range names {
		for i, m := range of[n][0].Measures {
			s := sample(of[n], func(o *Outcome) float64 { return o.Measures[i].Value })
			out = append(out, Summary{n, m.Name, m.Unit, m.Paper, s})
		}
	}
	return out
}

func (r *Report) summaryRows() [][]string {
	rows := [][]string{{"variant", "measure", "unit", "runs", "with_value", "mean", "ci95_half", "min", "p5", "p25", "p50", "p75", "p95", "max", "reference"}}
	for _, s := range r.Summaries() {
		row := []string{s.Variant, s.Measure, s.Unit, strconv.Itoa(s.Runs), strconv.Itoa(len(s.Values)), num(s.Mean()), num(s.Half())}
		for _, q := range []float64{0, 0.05, 0.25, 0.5, 0.75, 0.95, 1} {
			row = append(row, num(s.Quantile(q)))
		}
		rows = append(rows, append(row, s.Paper))
	}
	return rows
}

// FlowRecord is one flow of a run, a line of flows-RUN.csv. FCT is 0 for a flow that has not ended.
type FlowRecord struct {
	Group, Src, Dst   string
	Class             uint8
	Job               int
	Size              int64   // B
	Weight            float64 // weight at the flow's start
	Start, FCT, Ideal time
	Retransmits       uint64 // retransmissions of flows that have ended
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

// FlowStat returns a statistic (mean, p99 and so on) over the flows of a list that have ended. It is over their
// slowdown if what is "slowdown", else over their FCT in µs. sizes is a range such as 10KB-100KB, "" for all. The
// result equals a measure with these keys. It is NaN if no flow counts.
func FlowStat(flows []FlowRecord, what, sizes, stat string) (float64, error) {
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

// checkGaps reports a fault if the variant that a gap compares with is missing.
func (f *File) checkGaps(root *yamlnode.Map) {
	for _, p := range f.Plans {
		for _, me := range p.Measures {
			if me.over != "" && !slices.ContainsFunc(f.Plans, func(q *Plan) bool { return q.Variant == me.over }) {
				root.Fault("measures", "has %q over %q, want a variant", me.Name, me.over)
			}
		}
	}
}

// timesOf returns the FCT in µs of each flow that a measure is about, in the order of the flows' numbers. It is 0
// for a flow that has not ended.
func (r *run) timesOf(me *Measure) (times []float64) {
	r.flows(me, func(f *sim.Result, _ int) { times = append(times, f.FCT.Micros()) })
	return times
}

// fillGaps computes the measures that are gaps, once the runs to compare with have ended too. A gap is the sum of
// |FCT ÷ FCT in the other run − 1| over all flows (PrioPlus, §6.3). There is no value if a flow has not ended.
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

// times returns the completion times that a gap's measure has recorded.
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
