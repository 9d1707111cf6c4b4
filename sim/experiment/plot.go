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
		o, suffix, title := of[n][0], "", r.Title
		if n != "" {
			suffix, title = "-"+fileWord(n), title+", "+n
		}
		draw := func(file string, p picture) {
			p.variants = []string{n}
			for _, panel := range new(File).panels(p, r) {
				if len(panel.Lines) > 0 {
					w.plot(file+suffix, panel)
				}
			}
		}
		if len(o.Series.Time) > 1 {
			draw("goodput", picture{kind: "time", what: "goodput", title: r.Title, of: o.Series.Groups})
			draw("queues", picture{kind: "time", what: "queue", title: r.Title, of: o.Series.Queues})
		}
		fct := picture{kind: "cdf", title: title}
		for _, g := range o.Groups {
			fct.of = append(fct.of, g.Name)
		}
		draw("fct", fct)
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
