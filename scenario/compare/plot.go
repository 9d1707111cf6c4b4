package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plot draws what was measured over time into a file; the name's ending chooses the format:
// svg, png or pdf. One panel shows rates, the other the recorded queue, with a line for each
// variant.
func (r *Report) Plot(file string) error {
	rates, err := r.ratePanel()
	if err != nil {
		return err
	}
	queue, err := r.queuePanel()
	if err != nil {
		return err
	}
	rates.Title.Text = r.Title
	for _, p := range []*plot.Plot{rates, queue} {
		p.Y.Max *= 1.3 // room for the legend
	}
	format := strings.TrimPrefix(filepath.Ext(file), ".")
	canvas, err := draw.NewFormattedCanvas(24*vg.Centimeter, 18*vg.Centimeter, format)
	if err != nil {
		return err
	}
	panels := [][]*plot.Plot{{rates}, {queue}}
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(12), PadY: vg.Points(12)}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		panels[i][0].Draw(row[0])
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// panel returns an empty plot over the time of a variant.
func panel(y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "time at line rate (µs)", y
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p
}

// ratePanel shows the victim, or all long flows where there is none.
func (r *Report) ratePanel() (*plot.Plot, error) {
	what := r.scenario.Victim
	if what == "" {
		what = "long flows"
	}
	p := panel("payload of " + what + " (Gb/s)")
	n := 0
	for _, v := range r.Variants {
		for _, f := range r.scenario.Flows {
			if r.scenario.Victim != "" && f.Name != r.scenario.Victim {
				continue
			}
			name := v.Variant
			if r.scenario.Victim == "" {
				name += " " + f.Name
			}
			if err := addLine(p, name, n, v.Series.TimeUS, v.Series.Goodput[f.Name]); err != nil {
				return nil, err
			}
			n++
		}
	}
	return p, nil
}

// queuePanel shows the recorded queue and its target.
func (r *Report) queuePanel() (*plot.Plot, error) {
	p := panel("queue of " + r.scenario.Port.String() + " (KB)")
	for i, v := range r.Variants {
		if err := addLine(p, v.Variant, i, v.Series.TimeUS, v.Series.QueueKB); err != nil {
			return nil, err
		}
	}
	if t := float64(r.scenario.Target) / 1e3; t > 0 {
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: t}, {X: r.scenario.End.Micros(), Y: t}})
		if err != nil {
			return nil, err
		}
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(4)}
		p.Add(line)
		p.Legend.Add("Qth", line)
	}
	return p, nil
}

func addLine(p *plot.Plot, name string, color int, x, y []float64) error {
	pts := make(plotter.XYs, len(x))
	for i := range x {
		pts[i] = plotter.XY{X: x[i], Y: y[i]}
	}
	line, err := plotter.NewLine(pts)
	if err != nil {
		return fmt.Errorf("plot of %s: %w", name, err)
	}
	line.Color, line.Width = plotutil.Color(color), vg.Points(1.5)
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}
