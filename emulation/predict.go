package emulation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/preview"
	"github.com/headgate/headgate/sim/experiment"
	"github.com/headgate/headgate/units"
)

// predictSeeds is the number of seeds of a prediction.
const predictSeeds = 10

// Predicted is one number of a play, as predicted by the simulator (package preview) and as measured.
type Predicted struct {
	What      string         `json:"what"`
	Unit      string         `json:"unit,omitempty"`
	Predicted *preview.Range `json:"predicted"`
	Measured  float64        `json:"measured"`
	// Error is the prediction's error in percent of the measured value. It is unset if that is 0 or
	// nothing was predicted.
	Error *float64 `json:"error_percent,omitempty"`
	// Within reports whether the measured value lies within the seeds' range, to a thousandth.
	Within bool `json:"within"`
}

// predict plays a variant in the simulator and compares the result with the measurement.
func (s *Scenario) predict(ctx context.Context, c *config.Config, v Variant, r *Result) error {
	if r.Victim == nil || len(r.Invalid) > 0 {
		return nil // an invalid play has no measurements
	}
	text, more := s.traffic(c, v)
	p, err := preview.Run(ctx, preview.Options{
		After: c, Traffic: preview.Traffic{Name: s.Name, File: s.Name + ".yaml", Text: []byte(text)}, Measures: []byte(more), Seed: 1, Seeds: predictSeeds,
	})
	if err != nil {
		return fmt.Errorf("predicting %s: %w", s.Name, err)
	}
	list := s.values(r, true)
	for _, one := range preview.Scores(completions(s, p.Flows, r.Flows)) {
		list = append(list, experiment.Value{Name: one.Name, Value: one.Value})
	}
	for _, m := range list {
		if math.IsNaN(m.Value) {
			continue
		}
		one := p.Measure(m.Name)
		out := Predicted{What: m.Name, Unit: one.Unit, Predicted: one.After, Measured: m.Value}
		if one.After.Mean != nil {
			out.Within = one.After.Low*0.999 <= m.Value && m.Value <= one.After.High*1.001
			if m.Value != 0 {
				e := 100 * (*one.After.Mean/m.Value - 1)
				out.Error = &e
			}
		}
		r.Predicted = append(r.Predicted, out)
	}
	return nil
}

// completions returns the completed flows of the hosts' reports in the simulator's form. Each has the time that
// the flow would take alone, which is the same for all flows of one size between two hosts.
func completions(s *Scenario, simulated []experiment.FlowRecord, measured []FlowTotal) (out []experiment.FlowRecord) {
	type kind struct {
		from, to string
		size     int64
	}
	alone := map[kind]units.Time{}
	for _, f := range simulated {
		alone[kind{f.Src, f.Dst, f.Size}] = f.Ideal
	}
	for _, t := range measured {
		for _, e := range t.Ended {
			to := s.flow(t.Name).To
			out = append(out, experiment.FlowRecord{
				Group: t.Name, Src: e.From, Dst: to, Size: e.Bytes, FCT: units.Time(e.FCTUS * float64(units.Microsecond)), Ideal: alone[kind{e.From, to, e.Bytes}],
			})
		}
	}
	return out
}

// traffic returns the scenario's traffic under a variant as sections of an experiment, and the additional
// measures. Times are at line rate, like the scenario's.
func (s *Scenario) traffic(c *config.Config, v Variant) (text, more string) {
	var b strings.Builder
	fmt.Fprintf(&b, "packet: {payload: %dB, header: %dB, ack: %dB, rto: %v}\n", network.MSS, frameBytes-int64(network.MSS), max(packet.ACKLen-maxqd.Len, 64), patience)
	if v.CNPGap > 0 {
		fmt.Fprintf(&b, "cnp_gap: %v\n", v.CNPGap)
	}
	times := s.Times(0)
	end := times[len(times)-1]
	laws, flows := map[string]string{}, ""
	for i, p := range s.Phases {
		for _, a := range p.Actions {
			if a.Start == nil {
				continue
			}
			for _, from := range a.Start.From {
				line := s.lineRate(c, from)
				law := map[Law]string{DCQCN: "dcqcn-vendor", Soze: "soze", LineRate: "none"}[s.Law]
				if limit := s.Limits[from]; limit > 0 {
					law = "limit-" + from
					laws[law] = fmt.Sprintf("{kind: none, rate: %dbps}", int64(float64(line)*float64(network.MSS)/float64(frameBytes)*limit))
				}
				flows += fmt.Sprintf("  - {kind: flow, group: %q, from: %s, to: %s, start: %v, class: %d, law: %s, ", a.Start.Name, from, a.Start.To, times[i], classOf(c), law)
				if a.Start.Size > 0 {
					gap := line.TxTime((a.Start.Size + network.MSS - 1) / network.MSS * units.Bytes(frameBytes))
					flows += fmt.Sprintf("size: %dB, count: %d, every: %dps}\n", a.Start.Size, max(a.Start.Rounds, 1), gap)
				} else {
					flows += fmt.Sprintf("stop: %v}\n", end)
				}
			}
		}
	}
	if len(laws) > 0 {
		b.WriteString("laws:\n")
		for name, text := range laws {
			fmt.Fprintf(&b, "  %s: %s\n", name, text)
		}
	}
	fmt.Fprintf(&b, "flows:\n%srun: {until: %v, flows: true}\n", flows, end)
	for _, m := range s.Measures {
		if !meters[m.What].simulated {
			continue
		}
		more += fmt.Sprintf("  - {name: %q, what: %s", m.Name, m.What)
		switch m.What {
		case "makespan":
			more += fmt.Sprintf(", group: %q", s.Flows()[len(s.Flows())-1].Name)
		case "goodput":
			from := times[m.Phase]
			if !s.Phases[m.Phase].Whole {
				from = (times[m.Phase] + times[m.Phase+1]) / 2
			}
			more += fmt.Sprintf(", group: %q, from: %v, to: %v", cmp.Or(m.Group, s.Victim), from, times[m.Phase+1])
		}
		more += "}\n"
	}
	return b.String(), more
}

// lineRate returns the line rate that a host's link represents.
func (s *Scenario) lineRate(c *config.Config, host string) units.Rate {
	for _, l := range c.Links {
		if l.A.Node == host || l.B.Node == host {
			rate, _ := c.LineRate(l.Rate)
			return rate
		}
	}
	return 0
}

// classOf returns the class of the scenario's data.
func classOf(c *config.Config) uint8 { return qos.FromConfig(c).ClassOf(soze.FromConfig(c).DSCP).Class }

// predictedTable prints predictions beside measurements.
func predictedTable(w io.Writer, r *Report) {
	fmt.Fprintf(w, "policy\t\tpredicted\tmeasured\terror\twithin the seeds\t\n")
	for _, v := range r.Variants {
		name := v.name()
		for _, p := range v.Predicted { // none of an invalid play
			miss := "–"
			if p.Error != nil {
				miss = fmt.Sprintf("%+.0f %%", *p.Error)
			}
			within := "no"
			if p.Within {
				within = "yes"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%.5g\t%s\t%s\t\n", name, withUnit(p.What, p.Unit), p.Predicted, p.Measured, miss, within)
			name = ""
		}
	}
}
