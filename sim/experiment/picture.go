package experiment

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/plotting"
)

// picture is a plot that a file asks for, beside those that every report has.
type picture struct {
	name, title string
	kind        string   // time | cdf | sweep | bars
	what        string   // goodput or queue; of time
	of          []string // groups or queues; of time and cdf
	measures    []string // of sweep, one, and bars
	variants    []string // in their order; all when the file names none
	x, y        string   // titles of the axes; "" for those of the kind
	logX        bool
}

// place is where a sweep has a variant's point.
type place struct {
	line string
	x    float64
}

func (f *File) decodePictures(root *yamlnode.Map) {
	root.Each("plots", func(m *yamlnode.Map) { f.pictures = append(f.pictures, f.decodePicture(m)) })
}

func (f *File) decodePicture(m *yamlnode.Map) picture {
	m.Need("name", "kind")
	p := picture{name: m.Word("name", ""), title: m.Text("title", f.Title), x: m.Text("x", ""), y: m.Text("y", "")}
	p.kind = m.OneOf("kind", "", "time", "cdf", "sweep", "bars")
	first := f.Plans[0]
	var all, measures, queues []string
	for _, plan := range f.Plans {
		all = append(all, plan.Variant)
	}
	for _, me := range first.Measures {
		measures = append(measures, me.Name)
	}
	for _, q := range first.Queues {
		queues = append(queues, q.name)
	}
	p.variants = names(m, "variants", all, all)
	switch p.kind {
	case "time":
		p.what = m.OneOf("what", "goodput", "goodput", "queue")
		p.of = names(m, "of", map[string][]string{"goodput": first.Groups, "queue": queues}[p.what], nil)
	case "cdf":
		p.of = names(m, "of", first.Groups, first.Groups)
	case "sweep":
		p.measures = names(m, "measures", measures, nil)
		for _, v := range p.variants {
			if _, ok := f.places[v]; !ok {
				m.Fault("variants", "has %q, which has neither line nor x for a sweep", v)
			}
		}
		p.logX = m.Bool("log_x", false)
	case "bars":
		p.measures = names(m, "measures", measures, nil)
	}
	return p
}

// names reads a list of names, each one of those allowed; def is what a missing key says, nil
// when it must not be missing.
func names(m *yamlnode.Map, key string, allowed, def []string) (out []string) {
	if !m.Has(key) {
		if def == nil {
			m.Need(key)
		}
		return def
	}
	for _, name := range m.Texts(key) {
		if !slices.Contains(allowed, name) {
			m.Fault(key, "has %q, want some of %s", name, strings.Join(allowed, ", "))
		}
		out = append(out, name)
	}
	return out
}

// panels draws a picture of a report. Series are those of the first seed, numbers means over
// all.
func (f *File) panels(p picture, r *Report) []plotting.Panel {
	_, of := r.byVariant()
	summaries := r.Summaries()
	mean := func(variant, measure string) (float64, string) {
		for _, s := range summaries {
			if s.Variant == variant && s.Measure == measure {
				return s.Mean(), s.Unit
			}
		}
		return math.NaN(), ""
	}
	switch p.kind {
	case "time":
		return p.time(of)
	case "cdf":
		out := plotting.Panel{Title: p.title, X: "flow completion time (µs)", Y: "flows (%)"}
		p.each(of, func(variant, name string, o *Outcome) {
			for _, g := range o.Groups {
				if g.Name == name && len(g.Quantiles) > 0 {
					out.Lines = append(out.Lines, plotting.Line{Name: p.label(variant, name), X: g.Quantiles, Y: percents()})
				}
			}
		})
		return []plotting.Panel{p.axes(out)}
	case "bars":
		out := plotting.Panel{Title: p.title, Categories: p.variants}
		for _, me := range p.measures {
			l := plotting.Line{Name: me}
			for i, v := range p.variants {
				value, unit := mean(v, me)
				l.X, l.Y = append(l.X, float64(i)), append(l.Y, value)
				if out.Y = unit; len(p.measures) == 1 {
					out.Y = strings.TrimSpace(me + " " + unit)
				}
			}
			out.Lines = append(out.Lines, l)
		}
		return []plotting.Panel{p.axes(out)}
	}
	var out []plotting.Panel
	for _, me := range p.measures {
		panel := plotting.Panel{Title: p.title, LogX: p.logX}
		for _, v := range p.variants {
			at := f.places[v]
			value, unit := mean(v, me)
			panel.Y = strings.TrimSpace(me + " " + unit)
			i := slices.IndexFunc(panel.Lines, func(l plotting.Line) bool { return l.Name == at.line })
			if i < 0 {
				i = len(panel.Lines)
				panel.Lines = append(panel.Lines, plotting.Line{Name: at.line})
			}
			if !math.IsNaN(value) {
				panel.Lines[i].X, panel.Lines[i].Y = append(panel.Lines[i].X, at.x), append(panel.Lines[i].Y, value)
			}
		}
		out = append(out, p.axes(panel))
	}
	return out
}

// time draws one line per variant when it is of one thing, else a panel per variant.
func (p picture) time(of map[string][]*Outcome) (out []plotting.Panel) {
	y := map[string]string{"goodput": "goodput (Gb/s)", "queue": "queue (KB)"}[p.what]
	panels := map[string]*plotting.Panel{}
	var order []string
	p.each(of, func(variant, name string, o *Outcome) {
		title := p.title
		if len(p.of) > 1 && variant != "" {
			title += ", " + variant
		}
		if panels[title] == nil {
			panels[title] = &plotting.Panel{Title: title, X: "time (ms)", Y: y}
			order = append(order, title)
		}
		names, values := o.Series.Groups, o.Series.Goodput
		if p.what == "queue" {
			names, values = o.Series.Queues, o.Series.Queue
		}
		if i := slices.Index(names, name); i >= 0 {
			panels[title].Lines = append(panels[title].Lines, plotting.Line{Name: p.label(variant, name), X: millis(o.Series.Time), Y: values[i]})
		}
	})
	for _, title := range order {
		out = append(out, p.axes(*panels[title]))
	}
	return out
}

// each calls do for the first seed of each variant and each name.
func (p picture) each(of map[string][]*Outcome, do func(variant, name string, o *Outcome)) {
	for _, v := range p.variants {
		for _, name := range p.of {
			if len(of[v]) > 0 {
				do(v, name, of[v][0])
			}
		}
	}
}

// label names a line by its difference from the others of its panel.
func (p picture) label(variant, name string) string {
	switch {
	case len(p.of) == 1 && variant != "":
		return variant
	case p.kind == "cdf" && len(p.variants) > 1:
		return variant + ", " + name
	}
	return name
}

func (p picture) axes(panel plotting.Panel) plotting.Panel {
	if p.x != "" {
		panel.X = p.x
	}
	if p.y != "" {
		panel.Y = p.y
	}
	return panel
}

// WritePictures draws what the file asks for into a directory, each as
// <experiment>-<plot>.<format>, in every one of some formats of package plotting.
func (f *File) WritePictures(dir string, r *Report, formats ...string) error {
	w := &writer{dir: dir}
	for _, p := range f.pictures {
		for _, format := range formats {
			w.picture(fmt.Sprintf("%s-%s.%s", f.Name, p.name, format), f.panels(p, r)...)
		}
	}
	return w.err
}

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
