package emulation

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/sim/experiment"
	"github.com/headgate/headgate/units"
)

// Report is the result of a run, for people and, as JSON, for programs. Rates are of payload in bits per second.
// Rates and times are the scenario's own: for a scenario with a fabric of its own, measured rates are multiplied
// by Scale and measured times divided by it.
type Report struct {
	Scenario string  `json:"scenario"`
	Title    string  `json:"title"`
	Source   string  `json:"source,omitempty"`
	Fabric   string  `json:"fabric"`
	Scale    int64   `json:"scale"`
	LengthUS float64 `json:"length_us"`
	// Valid says that every play is valid. Within says that Valid is true and that all checks hold.
	Valid    bool      `json:"valid"`
	Within   bool      `json:"within"`
	Checks   []Check   `json:"checks"`
	Variants []*Result `json:"variants"`

	scenario *Scenario
	emulated units.Rate // rate of the recorded port in the emulation
}

// Check is a property that the scenario should show. A report with an invalid play has no checks.
type Check struct {
	What     string `json:"what"`
	Measured string `json:"measured"`
	OK       bool   `json:"ok"`
}

// Result is one play.
type Result struct {
	Variant  string             `json:"variant,omitempty"`
	Measures []experiment.Value `json:"measures,omitempty"` // measures of the scenario
	// Invalid has the reasons why no conclusion can be drawn from this play. It is empty for a valid play.
	Invalid []string      `json:"invalid,omitempty"`
	Faults  []string      `json:"faults,omitempty"` // injected by the operator's flags
	Phases  []PhaseResult `json:"phases"`
	Flows   []FlowTotal   `json:"flows"`
	Victim  *Victim       `json:"victim,omitempty"`
	Pause   Pause         `json:"pause"`
	Queue   *Queue        `json:"queue,omitempty"`
	// Pools has the peak of each pool, by switch, for switches with a buffer policy.
	Pools  map[string]Pools `json:"peak_pools_bytes,omitempty"`
	CNPs   uint64           `json:"cnps"` // congestion notifications that flows received
	Losses network.Losses   `json:"losses"`
	// Predicted compares the simulator's prediction with the measurement, if a prediction was asked for.
	Predicted []Predicted `json:"predicted,omitempty"`

	ReadySeconds float64 `json:"ready_after_s"` // wall clock, until all switches held their configuration
	// WorstLagMS is the largest lateness of the fabric or the controller, MaxLagMS the largest that is allowed,
	// both by the wall clock.
	WorstLagMS float64 `json:"worst_lag_ms"`
	MaxLagMS   float64 `json:"max_lag_ms"`
	Series     Curves  `json:"series"`
}

// Curves are recorded over time. Each has one value for every time.
type Curves struct {
	TimeUS  []float64            `json:"time_us"`
	Rates   map[string][]float64 `json:"rate_bps"` // rate of each flow around the time
	QueueKB []float64            `json:"queue_kb,omitempty"`
	Pauses  []uint64             `json:"pause_frames"` // PAUSE frames so far
}

// PhaseResult is the result of one phase. Flows are the flows that ran at its end.
type PhaseResult struct {
	Name    string      `json:"name"`
	Actions []string    `json:"actions"`
	StartUS float64     `json:"start_us"`
	EndUS   float64     `json:"end_us"`
	FromUS  float64     `json:"measured_from_us"` // in the longest part in which no operator changes a weight
	ToUS    float64     `json:"measured_to_us"`
	Flows   []FlowPhase `json:"flows"`
}

// FlowPhase is one flow, or all flows of a burst together, in one phase.
type FlowPhase struct {
	Name     string  `json:"name"`
	Measured float64 `json:"measured_bps"`
	Lowest   float64 `json:"lowest_bps"` // lowest of the rates, computed as in Curves
	MaxQDUS  float64 `json:"mean_max_qd_us,omitempty"`
	RTTUS    float64 `json:"mean_rtt_us,omitempty"`
	*Share
}

// Share is a flow's weighted max-min share beside its measured rate.
type Share struct {
	From       string   `json:"from"`
	To         string   `json:"to"`
	Weight     float64  `json:"weight"`
	Path       []string `json:"path"`       // egress ports by which the flow's packets were seen to leave
	Bottleneck string   `json:"bottleneck"` // the bottleneck that the solver computes
	Share      float64  `json:"share_bps"`  // the share that the solver computes
	Error      float64  `json:"error_percent"`
	SettledUS  *float64 `json:"settled_after_us,omitempty"` // when the rate came within tolerance for good
}

// FlowTotal is a flow, or all flows of a burst together, over the whole play.
type FlowTotal struct {
	Name        string `json:"name"`
	Flows       int    `json:"flows"`
	Delivered   int64  `json:"delivered_bytes"`
	CNPs        uint64 `json:"cnps"`
	Retransmits uint64 `json:"retransmissions"`
	// Done is the number of flows that were acknowledged to the end. LastUS is the time from the start of the first
	// flow to the end of the last one of these.
	Done   int     `json:"done,omitempty"`
	LastUS float64 `json:"last_done_after_us,omitempty"`
	// Ended has these flows, from the reports of their hosts.
	Ended []Completion `json:"completions,omitempty"`
}

// Completion is a flow that was acknowledged to the end.
type Completion struct {
	From  string  `json:"from"`
	Bytes int64   `json:"bytes"`
	FCTUS float64 `json:"fct_us"`
}

// Victim is a flow's loss of rate caused by congestion of other flows.
type Victim struct {
	Flow   string  `json:"flow"`
	Before float64 `json:"before_bps"`
	During float64 `json:"during_bps"`
	Lowest float64 `json:"lowest_bps"` // during
	// Lost is the lost part of the flow's rate, in percent; negative for a gain.
	Lost float64 `json:"lost_percent"`
}

// Pause summarises PFC by the frames that reached the ends of the wires.
type Pause struct {
	Frames    uint64  `json:"pause_frames"` // without refreshes
	Refreshes uint64  `json:"refresh_frames"`
	Resumes   uint64  `json:"resume_frames"`
	TimeUS    float64 `json:"pause_time_us"` // time with a paused class, summed over the links
	// Links has the links that were paused, by the paused sender: "left:3" or a host.
	Links []PausedLink `json:"links,omitempty"`
}

// of returns the PAUSE frames, without refreshes, that a sender got.
func (p *Pause) of(paused string) uint64 {
	for _, l := range p.Links {
		if l.Paused == paused {
			return l.Frames
		}
	}
	return 0
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
	PeakKB float64 `json:"peak_kb"` // peak over all time
	// The settled part is the last third of the time after the first phase.
	SettledKB float64 `json:"settled_kb"`     // mean
	LowKB     float64 `json:"settled_low_kb"` // 5th and 95th percentile
	HighKB    float64 `json:"settled_high_kb"`
	// SettledUS is the time after the first phase until the queue's mean over 80 µs came within a fifth of the
	// target and stayed there. SteadyUS is the same for SettledKB in place of the target. Both are unset if that
	// never happened.
	SettledUS *float64 `json:"settled_after_us,omitempty"`
	SteadyUS  *float64 `json:"steady_after_us,omitempty"`
}

// Pools are bytes of a switch's memory.
type Pools struct {
	Private   uint64 `json:"private"`
	Shared    uint64 `json:"shared"`
	Headroom  uint64 `json:"headroom"`
	Insurance uint64 `json:"insurance"`
}

// NewReport judges the plays of a scenario with the given phase times. c is the configuration of the first play.
func NewReport(s *Scenario, c *config.Config, times []units.Time, plays []*Result) *Report {
	r := &Report{Scenario: s.Name, Title: s.Title, Source: s.Source, Fabric: c.Name, Scale: s.scale(c), Checks: []Check{}, Variants: plays, scenario: s}
	r.LengthUS = times[len(times)-1].Micros()
	for _, v := range plays {
		v.Measures = s.values(v, false)
	}
	for _, l := range c.Links {
		if l.A == s.Port || l.B == s.Port {
			r.emulated = l.Rate
		}
	}
	r.finish()
	return r
}

// Variant returns the result of a variant, or nil if it was not played.
func (r *Report) Variant(name string) *Result {
	for _, v := range r.Variants {
		if v.Variant == name {
			return v
		}
	}
	return nil
}

// burst returns the total of the last flow of the scenario.
func (v *Result) burst() FlowTotal { return v.Flows[len(v.Flows)-1] }

// finish judges the measurements. It does nothing if a play is invalid, because the checks compare variants.
func (r *Report) finish() {
	r.Valid = !slices.ContainsFunc(r.Variants, func(v *Result) bool { return len(v.Invalid) > 0 })
	if r.Valid {
		r.scenario.Judge(r)
	}
	r.Within = r.Valid && !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.OK })
}

// check adds a check with a formatted measurement.
func (r *Report) check(ok bool, what, format string, args ...any) {
	r.Checks = append(r.Checks, Check{What: what, Measured: fmt.Sprintf(format, args...), OK: ok})
}

// noLosslessDrop checks that no variant except may dropped a packet of a lossless class.
func (r *Report) noLosslessDrop(may string) {
	var n uint64
	judged, what := 0, "no lossless packet is dropped"
	for _, v := range r.Variants {
		if v.Variant == may {
			what += fmt.Sprintf(" (but by %s, which may)", may)
			continue
		}
		n += v.Losses.Lossless
		judged++
	}
	if judged > 0 {
		r.check(n == 0, what, "%d", n)
	}
}

// maxLag returns the largest lateness of the fabric or the controller in a valid play. Switches and hosts share a
// clock that slows down on a busy machine, while the controller uses the wall clock. The bound is half of the
// shortest time that the controller measures, so that its actions fall into the right period.
func maxLag(c *config.Config) units.Time {
	shortest := units.FromDuration(c.Controller.ProbeTimeout) // without probes for that long a link is avoided
	for _, s := range c.Switches {
		if b := buffer.FromSwitch(&s); b.Policy.Victims() {
			shortest = min(shortest, c.Scaled(b.Period)) // SPFC's states
		}
	}
	for _, l := range c.Links {
		for _, end := range []config.Endpoint{l.A, l.B} {
			if s := c.Switch(end.Node); s != nil && buffer.FromSwitch(s).On() { // a PAUSE is repeated when it is half over
				shortest = min(shortest, l.Rate.PauseTime(buffer.FromSwitch(s).PauseQuanta)/2)
			}
		}
	}
	if p := pacc.FromConfig(c); p.Enabled && p.At == pacc.AtController {
		shortest = min(shortest, c.Scaled(p.Interval))
	}
	return shortest / 2
}

// validate fills in Invalid. more has reasons that are not in the measurement.
func (v *Result) validate(s *Scenario, more ...string) {
	bad := func(format string, args ...any) { v.Invalid = append(v.Invalid, fmt.Sprintf(format, args...)) }
	if v.late() {
		bad("the machine could not keep up: fabric or controller were %.0f ms late; the result is valid up to %.0f ms", v.WorstLagMS, v.MaxLagMS)
	}
	v.Invalid = append(v.Invalid, more...)
	l := v.Losses
	if len(v.Faults) == 0 && l.Faults() > 0 {
		bad("packets were lost for other reasons than congestion: %d in pipelines for another reason than a full queue or buffer, %d in traffic managers, %d on links, %d at switches that were down",
			l.Pipelines, l.Queues, l.Links, l.Switches)
	}
	if n := l.Dropped() - l.Lossless; s.Lossless && n > 0 {
		bad("no room for %s of lossy classes, such as acknowledgements", units.Count(n, "packet"))
	}
	for _, f := range v.Flows {
		if f.Delivered == 0 {
			bad("flow %s never ran: none of its bytes was delivered", f.Name)
		}
	}
	ran := map[string]bool{}
	for _, p := range v.Phases {
		for _, f := range p.Flows {
			switch {
			case s.Law == Soze && f.Share == nil:
				bad("phase %q: none of flow %s's packets was seen", p.Name, f.Name)
			case !ran[f.Name] && f.Measured == 0 && len(v.Faults) == 0:
				bad("phase %q: flow %s did not run", p.Name, f.Name)
			}
			ran[f.Name] = true
		}
	}
}

// late reports whether the machine could not keep up.
func (v *Result) late() bool { return v.WorstLagMS > v.MaxLagMS }

// Disturbed reports whether the machine could not keep up with a play. Played again, the scenario may be valid.
func (r *Report) Disturbed() bool {
	for _, v := range r.Variants {
		if v.late() {
			return true
		}
	}
	return false
}
