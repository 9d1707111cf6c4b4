package emulation

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/ansi"

	"github.com/headgate/headgate/plotting"
	"github.com/headgate/headgate/sim/experiment"
)

// WriteTable writes the report for people: faults of the play first, then the measurements, then the
// checks.
func (r *Report) WriteTable(w io.Writer) error {
	for _, v := range r.Variants {
		for _, why := range v.Invalid {
			fmt.Fprintf(w, "INVALID%s: %s\n", strings.TrimRight(" "+v.Variant, " "), why)
		}
	}
	if !r.Valid {
		again := ""
		if r.Disturbed() {
			again = " Run it again while the machine has less to do."
		}
		fmt.Fprintf(w, "A run that is partly invalid proves nothing.%s\n\n", again)
	}
	fmt.Fprintf(w, "%s\n", r.Title)
	if r.scenario.Fabric != nil {
		fmt.Fprintf(w, "%s\nrates and times at line rate: measured at %g Mb/s, bytes as they are, times by 1/%d\n", ansi.Wordwrap(r.Source, 100, ""), float64(r.emulated)/1e6, r.Scale)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	r.scenario.Table(t, r)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if slices.ContainsFunc(r.Variants, func(v *Result) bool { return len(v.Predicted) > 0 }) {
		predictedTable(t, r)
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	late := 0.0
	for _, v := range r.Variants {
		late = max(late, v.WorstLagMS)
		if l := v.Losses; l.Dropped()+l.Faults() > 0 {
			fmt.Fprintf(w, "%slost packets: %d at queue limits, %d for want of memory (%d of lossless classes), %d otherwise\n",
				strings.TrimLeft(v.name()+" ", " "), l.Admission, l.Buffer, l.Lossless, l.Faults())
		}
	}
	fmt.Fprintf(w, "at most %.0f ms late by the wall clock\n", late)
	for _, c := range r.Checks {
		mark := "yes"
		if !c.OK {
			mark = "NO "
		}
		fmt.Fprintf(w, "%s  %s: %s\n", mark, c.What, c.Measured)
	}
	return nil
}

// name returns the variant's name in a table.
func (v *Result) name() string {
	if len(v.Invalid) > 0 {
		return v.Variant + " (invalid)"
	}
	return v.Variant
}

// sharesTable prints each flow's rate beside its share, phase by phase.
func sharesTable(w io.Writer, r *Report) {
	fmt.Fprintf(w, "phase\tflow\tweight\tshare Mb/s\tmeasured\terror\tsettled after\tmaxQD ms\tRTT ms\tbottleneck\t\n")
	for _, v := range r.Variants {
		for _, p := range v.Phases {
			name := p.Name
			for _, f := range p.Flows {
				s, settled := f.Share, "no"
				if s == nil {
					s = &Share{}
				}
				if s.SettledUS != nil {
					settled = fmt.Sprintf("%.0f ms", *s.SettledUS/1e3)
				}
				fmt.Fprintf(w, "%s\t%s %s→%s\t%g\t%.2f\t%.2f\t%+.1f%%\t%s\t%.1f\t%.1f\t%s\t\n", name, f.Name, s.From, s.To,
					s.Weight, s.Share/1e6, f.Measured/1e6, s.Error, settled, f.MaxQDUS/1e3, f.RTTUS/1e3, s.Bottleneck)
				name = ""
			}
		}
	}
}

// Plot draws the measurements over time into a file whose ending chooses the format. One panel shows rates.
// Another shows the recorded queue, if there is one. A scenario with variants has one line for each variant: the
// rate of the victim, or of all endless flows together.
func (r *Report) Plot(file string) error {
	s := r.scenario
	rates := plotting.Panel{Title: r.Title, X: "time at line rate (µs)", Y: "payload (b/s)"}
	if s.Fabric == nil {
		rates.X = "time (µs)"
	}
	queue, recorded := plotting.Panel{X: rates.X, Y: "queue of " + s.Port.String() + " (KB)"}, s.Port.Node != ""
	var drawn []string
	for _, p := range s.Phases {
		for _, a := range p.Actions {
			if a.Start != nil && a.Start.Size == 0 && (s.Victim == "" || a.Start.Name == s.Victim) {
				drawn = append(drawn, a.Start.Name)
			}
		}
	}
	line := func(name string, v *Result, of ...[]float64) plotting.Line {
		l := plotting.Line{Name: name}
		for i, t := range v.Series.TimeUS {
			sum := 0.0
			for _, values := range of {
				sum += values[i]
			}
			l.X, l.Y = append(l.X, t), append(l.Y, sum)
		}
		return l
	}
	for _, v := range r.Variants {
		if s.Fabric == nil {
			for _, name := range drawn {
				rates.Lines = append(rates.Lines, line(name, v, v.Series.Rates[name]))
			}
			continue
		}
		var of [][]float64
		for _, name := range drawn {
			of = append(of, v.Series.Rates[name])
		}
		name := experiment.DisplayName(v.name())
		rates.Lines = append(rates.Lines, line(name, v, of...))
		if recorded {
			queue.Lines = append(queue.Lines, line(name, v, v.Series.QueueKB))
		}
	}
	if s.Fabric != nil {
		rates.Y = "payload of " + strings.Join(drawn, " + ") + " (b/s)"
	}
	if !recorded {
		return plotting.Save(file, rates)
	}
	if s.Target > 0 {
		queue.Levels = []plotting.Level{{Name: "Qth", Y: float64(s.Target) / 1e3}}
	}
	return plotting.Save(file, rates, queue)
}
