package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/plotting"
)

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
		over := func(y string, names []string, values [][]float64) plotting.Panel {
			p := plotting.Panel{Title: title, X: "time (ms)", Y: y}
			for i, name := range names {
				p.Lines = append(p.Lines, plotting.Line{Name: name, X: millis(s.Time), Y: values[i]})
			}
			return p
		}
		if len(s.Time) > 1 {
			w.plot("goodput"+suffix, over("goodput (Gb/s)", s.Groups, s.Goodput))
			if len(s.Queues) > 0 {
				w.plot("queues"+suffix, over("queue (KB)", s.Queues, s.Queue))
			}
		}
		fct := plotting.Panel{Title: title, X: "flow completion time (µs)", Y: "flows (%)"}
		for _, g := range o.Groups {
			if len(g.Quantiles) > 0 {
				fct.Lines = append(fct.Lines, plotting.Line{Name: g.Name, X: g.Quantiles, Y: percents()})
			}
		}
		if len(fct.Lines) > 0 {
			w.plot("fct"+suffix, fct)
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

// plot writes a panel as PNG and SVG.
func (w *writer) plot(file string, p plotting.Panel) {
	w.picture(file+".png", p)
	w.picture(file+".svg", p)
}

// picture writes panels in the format of the file's ending.
func (w *writer) picture(file string, panels ...plotting.Panel) {
	if w.err != nil {
		return
	}
	picture, err := plotting.Render(strings.TrimPrefix(filepath.Ext(file), "."), panels...)
	if err != nil {
		w.err = fmt.Errorf("plot %s: %w", file, err)
		return
	}
	w.write(file, func(f *os.File) error {
		_, err := picture.WriteTo(f)
		return err
	})
}
