package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/headgate/headgate/scenario/inproc"
)

// Report is what a run ends with, for people and, as JSON, for programs. Rates are payload
// rates in bits per second.
type Report struct {
	Scenario string        `json:"scenario"`
	Fabric   string        `json:"fabric"`
	Seconds  float64       `json:"seconds"`
	Phases   []PhaseReport `json:"phases"`
	Losses   inproc.Losses `json:"losses"`
	Faults   []string      `json:"faults,omitempty"` // injected by the operator's flags
	// Within says that every flow of every phase came within tolerance of its share and,
	// unless faults were injected, that no packet was lost.
	Within bool `json:"within"`
	// WorstLag is how far the process fell behind the wall clock; large values mean that
	// the machine is too slow for the fabric's rates.
	WorstLag float64 `json:"worst_lag_ms"`
}

// PhaseReport is one phase.
type PhaseReport struct {
	Name    string       `json:"name"`
	Actions []string     `json:"actions"`
	Start   float64      `json:"start_s"`
	End     float64      `json:"end_s"`
	Flows   []FlowReport `json:"flows"`
}

// FlowReport is one flow in one phase.
type FlowReport struct {
	Name       string   `json:"name"`
	From       string   `json:"from"`
	To         string   `json:"to"`
	Weight     float64  `json:"weight"`
	Path       []string `json:"path"`       // egress ports that the flow's packets were seen to leave by
	Bottleneck string   `json:"bottleneck"` // by the solver
	Share      float64  `json:"share_bps"`  // weighted max-min share by the solver
	Measured   float64  `json:"measured_bps"`
	Error      float64  `json:"error_percent"`
	Settled    bool     `json:"settled"`
	SettledMS  float64  `json:"settled_after_ms"` // when Settled
	MaxQDMS    float64  `json:"mean_max_qd_ms"`
	RTTMS      float64  `json:"mean_rtt_ms"`
}

// judge fills in Within.
func (r *Report) judge() {
	r.Within = len(r.Phases) > 0 && (len(r.Faults) > 0 || !r.Losses.Any())
	for _, p := range r.Phases {
		for _, f := range p.Flows {
			if math.Abs(f.Error) > tolerance*100 || math.IsNaN(f.Error) {
				r.Within = false
			}
		}
	}
}

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "phase\tflow\tweight\tshare Mb/s\tmeasured\terror\tsettled after\tmaxQD ms\tRTT ms\tbottleneck\t\n")
	for _, p := range r.Phases {
		name := p.Name
		for _, f := range p.Flows {
			settled := "no"
			if f.Settled {
				settled = fmt.Sprintf("%.0f ms", f.SettledMS)
			}
			fmt.Fprintf(t, "%s\t%s %s→%s\t%g\t%.2f\t%.2f\t%+.1f%%\t%s\t%.1f\t%.1f\t%s\t\n", name, f.Name, f.From, f.To,
				f.Weight, f.Share/1e6, f.Measured/1e6, f.Error, settled, f.MaxQDMS, f.RTTMS, f.Bottleneck)
			name = ""
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	l := r.Losses
	_, err := fmt.Fprintf(w, "\nlost: %d in queues, %d refused by pipelines, %d on links, %d at switches that were down; hosts sent %d packets again\n"+
		"worst lag behind the wall clock: %.1f ms\n%s\n", l.Queues, l.Pipelines, l.Links, l.Switches, l.Retransmits, r.WorstLag, r.verdict())
	return err
}

func (r *Report) verdict() string {
	if r.Within {
		return fmt.Sprintf("every flow within %g %% of its weighted max-min share", tolerance*100)
	}
	return fmt.Sprintf("NOT every flow within %g %% of its share without loss: see the table", tolerance*100)
}
