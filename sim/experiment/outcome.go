package experiment

import (
	"encoding/json"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/headgate/headgate/sim"
)

// Outcome is all that is kept of one run. Nothing in it depends on the machine or on what
// else runs: equal plans and seeds give equal outcomes, byte for byte.
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
	Deadlock    []string     `json:"deadlock,omitempty"` // the ports of the first
	Series      Series       `json:"series"`
	Links       []Link       `json:"links,omitempty"` // where the plan asks for them
	Flows       []FlowRecord `json:"-"`               // by start, where the plan asks for them

	work    sim.Work // how it was done
	packets int      // for how many there was memory
}

// value returns a measure's value, NaN for a measure that the run does not have.
func (o *Outcome) value(measure string) float64 {
	if i := slices.IndexFunc(o.Measures, func(v Value) bool { return v.Name == measure }); i >= 0 {
		return o.Measures[i].Value
	}
	return math.NaN()
}

// Group is what became of a group's flows. Times are of flows that have ended.
type Group struct {
	Name      string    `json:"name"`
	Flows     int       `json:"flows"`
	Done      int       `json:"done"`
	Bytes     int64     `json:"bytes"`             // payload delivered
	Victims   int       `json:"victims,omitempty"` // where the plan asks for links
	FCT       Spread    `json:"fct_us"`
	Slowdown  Spread    `json:"slowdown"`
	Quantiles []float64 `json:"fct_quantiles_us,omitempty"` // at 0, 1, … 100 %
}

// Spread sums up a set of numbers; all are 0 when it is empty.
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
	Queue   [][]float64 `json:"queue_kb,omitempty"` // per queue, at the time
	Gauges  []string    `json:"gauges,omitempty"`   // with their units
	Gauge   [][]float64 `json:"gauge,omitempty"`    // per gauge, at the time or over the interval
}

// MarshalJSON writes a value that is not a number as null, which JSON has no number for.
func (v Value) MarshalJSON() ([]byte, error) {
	type plain Value
	if !math.IsNaN(v.Value) {
		return json.Marshal(plain(v))
	}
	return json.Marshal(struct {
		plain
		Value *float64 `json:"value"`
	}{plain: plain(v)})
}

// UnmarshalJSON reads what MarshalJSON writes.
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
