package scenario

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/headgate/headgate/units"
)

// Recording is every flow's series, for plots.
type Recording struct {
	Title string
	Began units.Time
	Flows []Recorded
}

// Recorded is one flow's series.
type Recorded struct {
	Name   string
	Series Series
}

// recording returns the series of all flows there were.
func (r *Run) recording() *Recording {
	s := r.stage.samples
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := &Recording{Title: r.opts.Script.Title, Began: r.began}
	for _, f := range s.all() {
		rec.Flows = append(rec.Flows, Recorded{f.flow.Name + " " + f.flow.From + "→" + f.flow.To, f.series})
	}
	return rec
}

// Plot draws payload rates over time into a file; the name's ending chooses the format: svg, png or pdf.
func (rec *Recording) Plot(file string) error {
	p := plot.New()
	p.Title.Text = rec.Title
	p.X.Label.Text = "time (s)"
	p.Y.Label.Text = "payload rate (Mb/s)"
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	peak := 0.0
	for i, f := range rec.Flows {
		points := rec.rates(f.Series)
		for _, pt := range points {
			peak = max(peak, pt.Y)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("plot of flow %s: %w", f.Name, err)
		}
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(f.Name, line)
	}
	p.Y.Max = peak * 1.3 // room for the legend
	return p.Save(24*vg.Centimeter, 12*vg.Centimeter, file)
}

// rates returns a flow's rate over a fifth of a second around each sample.
func (rec *Recording) rates(s Series) plotter.XYs {
	const half = 100 * units.Millisecond
	out := make(plotter.XYs, 0, len(s))
	for _, p := range s {
		around := s.between(p.At-half, p.At+half)
		out = append(out, plotter.XY{X: (p.At - rec.Began).Seconds(), Y: around.rate() / 1e6})
	}
	return out
}
