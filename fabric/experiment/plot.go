package experiment

import (
	"fmt"
	"io"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// maxLines bounds the lines of a plot; more cannot be told apart.
const maxLines = 16

// plots draws goodput and queues over time for the first seed of each variant, and the
// distribution of flow completion times.
func (w *writer) plots(r *Report) {
	names, of := r.byVariant()
	for _, n := range names {
		o := of[n][0]
		s := &o.Series
		suffix := ""
		if n != "" {
			suffix = "-" + fileWord(n)
		}
		title := r.Title
		if n != "" {
			title += ", " + n
		}
		if len(s.Time) > 1 {
			w.lines("goodput"+suffix, title, "time (ms)", "goodput (Gb/s)", s.Groups, millis(s.Time), s.Goodput)
			if len(s.Queues) > 0 {
				w.lines("queues"+suffix, title, "time (ms)", "queue (KB)", s.Queues, millis(s.Time), s.Queue)
			}
		}
		var groups []string
		var xs, ys [][]float64
		for _, g := range o.Groups {
			if len(g.Quantiles) > 0 {
				groups, xs, ys = append(groups, g.Name), append(xs, g.Quantiles), append(ys, percents())
			}
		}
		if len(groups) > 0 {
			w.curves("fct"+suffix, title, "flow completion time (µs)", "flows (%)", groups, xs, ys)
		}
	}
}

func millis(us []float64) []float64 {
	ms := make([]float64, len(us))
	for i, v := range us {
		ms[i] = v / 1e3
	}
	return ms
}

func percents() []float64 {
	p := make([]float64, 101)
	for i := range p {
		p[i] = float64(i)
	}
	return p
}

func (w *writer) lines(file, title, x, y string, names []string, at []float64, values [][]float64) {
	xs := make([][]float64, len(names))
	for i := range xs {
		xs[i] = at
	}
	w.curves(file, title, x, y, names, xs, values)
}

func (w *writer) curves(file, title, x, y string, names []string, xs, ys [][]float64) {
	if w.err != nil {
		return
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Legend.Top = true
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	for i, name := range names {
		if i == maxLines {
			break
		}
		pts := make(plotter.XYs, len(xs[i]))
		for j := range pts {
			pts[j].X, pts[j].Y = xs[i][j], ys[i][j]
		}
		l, err := plotter.NewLine(pts)
		if err != nil {
			w.err = fmt.Errorf("plot %s: %s: %w", file, name, err)
			return
		}
		l.Color, l.Dashes = plotutil.Color(i), plotutil.Dashes(i/7)
		p.Add(l)
		if len(names) > 1 {
			p.Legend.Add(name, l)
		}
	}
	for _, format := range []string{"png", "svg"} {
		c, err := p.WriterTo(18*vg.Centimeter, 10*vg.Centimeter, format)
		if err != nil {
			w.err = fmt.Errorf("plot %s: %w", file, err)
			return
		}
		w.write(file+"."+format, func(f *os.File) error { return writeTo(c, f) })
	}
}

func writeTo(from io.WriterTo, to io.Writer) error {
	_, err := from.WriteTo(to)
	return err
}
