package compare

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// Report is what a comparison ends with, for people and, as JSON, for programs. Rates (of
// payload) and times are at line rate: what was measured, multiplied and divided by Scale.
type Report struct {
	Scenario string    `json:"scenario"`
	Title    string    `json:"title"`
	Source   string    `json:"source"`
	Scale    int64     `json:"scale"`
	LineGbps float64   `json:"line_rate_gbps"`     // of the recorded port
	Emulated float64   `json:"emulated_rate_mbps"` // that it really runs at
	Windows  Windows   `json:"windows_us"`
	Variants []*Result `json:"variants"`
	Checks   []Check   `json:"checks"`
	// Within says that all checks hold.
	Within bool `json:"within"`

	scenario *Scenario
}

// Windows are the parts of a variant's time in which was measured.
type Windows struct {
	Before [2]float64 `json:"before"`
	During [2]float64 `json:"during"`
	End    float64    `json:"end"`
}

// Check is something that the scenario is to show.
type Check struct {
	What     string `json:"what"`
	Measured string `json:"measured"`
	OK       bool   `json:"ok"`
}

// Result is one variant.
type Result struct {
	Variant string       `json:"variant"`
	Flows   []FlowResult `json:"flows"`
	Victim  *Victim      `json:"victim,omitempty"`
	Pause   Pause        `json:"pause"`
	Queue   Queue        `json:"queue"`
	// Pools is the most that each pool held, by switch; of switches with a buffer policy.
	Pools  map[string]Pools `json:"peak_pools_bytes,omitempty"`
	CNPs   CNPs             `json:"cnps"`
	Losses inproc.Losses    `json:"losses"`
	// LosslessDrops are packets of lossless classes that a pipeline dropped.
	LosslessDrops uint64  `json:"lossless_drops"`
	ReadySeconds  float64 `json:"ready_after_s"` // wall clock, until all switches held their configuration
	WorstLagMS    float64 `json:"worst_lag_ms"`  // wall clock
	Series        Curves  `json:"series"`
}

// Curves are what was recorded over time, one value of each for every time.
type Curves struct {
	TimeUS  []float64            `json:"time_us"`
	Goodput map[string][]float64 `json:"goodput_gbps"` // by flow, over RateOver around the time
	QueueKB []float64            `json:"queue_kb"`
	Pauses  []uint64             `json:"pause_frames"` // so far
}

// FlowResult is a flow, or all flows of a burst together.
type FlowResult struct {
	Name        string  `json:"name"`
	Flows       int     `json:"flows"`
	Before      float64 `json:"before_gbps"`
	During      float64 `json:"during_gbps"`
	Lowest      float64 `json:"lowest_gbps"` // over RateOver within During
	CNPs        uint64  `json:"cnps"`
	Retransmits uint64  `json:"retransmissions"`
	// Done is how many of a burst's flows were acknowledged to the end, Last when the last
	// of them was, counted from the burst's begin.
	Done int     `json:"done,omitempty"`
	Last float64 `json:"last_done_after_us,omitempty"`
	// Senders has what each host was told, in the order in which they began.
	Senders []Sender `json:"senders"`
}

// Sender is one host's part of a FlowResult.
type Sender struct {
	Host string `json:"host"`
	CNPs uint64 `json:"cnps"`
}

// Victim is what congestion that it had no part in cost a flow.
type Victim struct {
	Flow   string  `json:"flow"`
	Before float64 `json:"before_gbps"`
	During float64 `json:"during_gbps"`
	Lowest float64 `json:"lowest_gbps"`
	// Lost is the part of its throughput that it lost, in percent; less than 0 is a gain.
	Lost float64 `json:"lost_percent"`
}

// Pause is what PFC did, by the frames that came to the ends of the wires.
type Pause struct {
	Frames    uint64  `json:"pause_frames"` // refreshes left out
	Refreshes uint64  `json:"refresh_frames"`
	Resumes   uint64  `json:"resume_frames"`
	TimeUS    float64 `json:"pause_time_us"` // during which a class of a link was paused, all links together
	// Links has those that were paused, by who was: "left:3" or a host.
	Links []PausedLink `json:"links,omitempty"`
}

// PausedLink is the sending end of a link.
type PausedLink struct {
	Paused string  `json:"paused"`
	Frames uint64  `json:"pause_frames"`
	TimeUS float64 `json:"pause_time_us"`
}

// Queue is the recorded queue.
type Queue struct {
	Port   string  `json:"port"`
	PeakKB float64 `json:"peak_kb"` // of all time
	MeanKB float64 `json:"mean_kb"` // during
	// The settled part is the last third of the time after the burst began.
	SettledKB float64 `json:"settled_kb"`     // mean
	LowKB     float64 `json:"settled_low_kb"` // 5th and 95th percentile
	HighKB    float64 `json:"settled_high_kb"`
	// Settled says that the mean over 80 µs came within a fifth of the target after the
	// burst began and stayed there, SettledUS when.
	Settled   bool    `json:"settled"`
	SettledUS float64 `json:"settled_after_us,omitempty"`
}

// CNPs counts congestion notifications that came to hosts.
type CNPs struct {
	All    uint64 `json:"all"`
	Strays uint64 `json:"of_no_flow"`
}

// Pools are bytes of a switch's memory.
type Pools struct {
	Private   uint64 `json:"private"`
	Shared    uint64 `json:"shared"`
	Headroom  uint64 `json:"headroom"`
	Insurance uint64 `json:"insurance"`
}

func newReport(s *Scenario, configs []*config.Config) *Report {
	r := &Report{Scenario: s.Name, Title: s.Title, Source: s.Source, scenario: s}
	us := func(w Window) [2]float64 { return [2]float64{w.From.Micros(), w.To.Micros()} }
	r.Windows = Windows{Before: us(s.Before), During: us(s.During), End: s.End.Micros()}
	if len(configs) > 0 {
		c := configs[0]
		rate := portRate(c, s.Port)
		r.Scale, r.Emulated = c.Scale, float64(rate)/1e6
		r.LineGbps = float64(rate) * float64(c.Scale) / 1e9
	}
	return r
}

// portRate returns the rate of a switch's port in its fabric.
func portRate(c *config.Config, e config.Endpoint) units.Rate {
	if r := c.Switch(e.Node).Port(e.Port).Rate; r > 0 {
		return r
	}
	for _, l := range c.Links {
		if l.A == e || l.B == e {
			return l.Rate
		}
	}
	return 0
}

// Variant returns the result of a variant, nil when it was not played.
func (r *Report) Variant(name string) *Result {
	for _, v := range r.Variants {
		if v.Variant == name {
			return v
		}
	}
	return nil
}

// judge fills in Checks and Within.
func (r *Report) judge(s *Scenario) {
	r.Checks, r.Within = s.checks(r), true
	for _, c := range r.Checks {
		r.Within = r.Within && c.OK
	}
}

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// check makes a Check with a formatted measurement.
func check(ok bool, what, format string, args ...any) Check {
	return Check{What: what, Measured: fmt.Sprintf(format, args...), OK: ok}
}
