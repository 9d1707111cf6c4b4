package emulation

import (
	"strings"

	"github.com/headgate/headgate/plotting"
)

// Plot draws what was measured over time into a file; the name's ending chooses the format. One
// panel shows rates, the other the recorded queue where there is one. A scenario with variants
// has a line for each; what is drawn of it is the victim, or all flows without end together.
func (r *Report) Plot(file string) error {
	s := r.scenario
	unit, micros := "Gb/s", 1.0
	rates := plotting.Panel{Title: r.Title, X: "time at line rate (µs)"}
	if s.Fabric == nil {
		unit, micros, rates.X = "Mb/s", 1e6, "time (s)"
	}
	per := map[string]float64{"Gb/s": 1e9, "Mb/s": 1e6}[unit]
	queue := plotting.Panel{X: rates.X, Y: "queue of " + s.Port.String() + " (KB)"}
	var drawn []string
	for _, p := range s.Phases {
		for _, a := range p.Actions {
			if a.Start != nil && a.Start.Size == 0 && (s.Victim == "" || a.Start.Name == s.Victim) {
				drawn = append(drawn, a.Start.Name)
			}
		}
	}
	line := func(name string, v *Result, per float64, of ...[]float64) plotting.Line {
		l := plotting.Line{Name: name}
		for i, t := range v.Series.TimeUS {
			sum := 0.0
			for _, values := range of {
				sum += values[i]
			}
			l.X, l.Y = append(l.X, t/micros), append(l.Y, sum/per)
		}
		return l
	}
	for _, v := range r.Variants {
		if s.Fabric == nil {
			for _, name := range drawn {
				rates.Lines = append(rates.Lines, line(name, v, per, v.Series.Rates[name]))
			}
			continue
		}
		var of [][]float64
		for _, name := range drawn {
			of = append(of, v.Series.Rates[name])
		}
		rates.Lines = append(rates.Lines, line(v.name(), v, per, of...))
		queue.Lines = append(queue.Lines, line(v.name(), v, 1, v.Series.QueueKB))
	}
	rates.Y = "payload (" + unit + ")"
	if s.Fabric == nil {
		return plotting.Save(file, rates)
	}
	rates.Y = "payload of " + strings.Join(drawn, " + ") + " (" + unit + ")"
	if s.Target > 0 {
		queue.Levels = []plotting.Level{{Name: "Qth", Y: float64(s.Target) / 1e3}}
	}
	return plotting.Save(file, rates, queue)
}
