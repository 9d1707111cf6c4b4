package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/plotting"
)

// picture is a plot that a file asks for, in addition to the plots of every report.
type picture struct {
	name, title string
	kind        string   // time | cdf | sweep | bars
	what        string   // goodput or queue; for time
	of          []string // groups or queues; for time and cdf
	measures    []string // several for bars, one for sweep
	variants    []string // in their order; all when the file names none
	x, y        string   // titles of the axes; "" for the kind's own
	logX        bool
}

// place is the line and the x of a variant's point in a sweep.
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

// names reads a list of names, each one of allowed. def replaces a missing key; if def is nil the key must be
// there.
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

// lookup returns a measure of a variant: its mean, least and greatest value over the seeds, NaN for none, and its unit.
type lookup func(variant, measure string) (mean, low, high float64, unit string)

func (r *Report) lookup() lookup {
	summaries := r.Summaries()
	return func(variant, measure string) (mean, low, high float64, unit string) {
		for _, s := range summaries {
			if s.Variant == variant && s.Measure == measure {
				return s.Mean(), s.Quantile(0), s.Quantile(1), s.Unit
			}
		}
		return math.NaN(), math.NaN(), math.NaN(), ""
	}
}

// printed matches a Row's value as spreadText prints it.
var printed = regexp.MustCompile(`^([-+.e\d]+)(?: ± [-+.e\d]+)?(?: \(([-+.e\d]+)…([-+.e\d]+)\))?`)

func (r *Record) lookup() lookup {
	return func(variant, measure string) (mean, low, high float64, unit string) {
		mean, low, high = math.NaN(), math.NaN(), math.NaN()
		i := slices.IndexFunc(r.Measures, func(m Row) bool { return m.Variant == variant && m.Measure == measure })
		if i < 0 {
			return mean, low, high, ""
		}
		if m := printed.FindStringSubmatch(r.Measures[i].Value); m != nil {
			for k, to := range []*float64{&mean, &low, &high} {
				if v, err := strconv.ParseFloat(m[1+k], 64); err == nil {
					*to = v
				}
			}
		}
		return mean, low, high, r.Measures[i].Unit
	}
}

// ofPaper returns the paper's value of a measure, or NaN if no claim has one. ratio says that the paper gives only
// a ratio to another value; value is then the ratio times our measurement of that other value.
func (f *File) ofPaper(variant, measure string, ours lookup) (value float64, ratio bool) {
	for _, c := range f.Claims {
		switch {
		case math.IsNaN(c.paper) || c.trend || len(c.of) != 1 || c.of[0] != reference{variant, measure}:
		case c.over == nil:
			return c.paper, false
		default:
			over, _, _, _ := ours(c.over[0].variant, c.over[0].measure)
			value, ratio = c.paper*over, true
		}
	}
	if !ratio {
		value = math.NaN()
	}
	return value, ratio
}

// panels makes the panels of a picture from measures, or from series of the first seed.
func (f *File) panels(p picture, of map[string][]*Outcome, ours lookup) (out []plotting.Panel) {
	switch p.kind {
	case "time":
		return p.time(of)
	case "cdf":
		panel := plotting.Panel{Title: p.title, X: "flow completion time (µs)", Y: "flows (%)", LogX: true}
		p.each(of, func(variant, name string, o *Outcome) {
			for _, g := range o.Groups {
				if g.Name == name && len(g.Quantiles) > 0 {
					panel.Lines = append(panel.Lines, plotting.Line{Name: p.label(variant, name), X: g.Quantiles, Y: percents()})
				}
			}
		})
		return []plotting.Panel{p.axes(panel)}
	}
	var units []string // the unit of each panel in out
	ratios := false
	// add adds a variant's measure to a line at x.
	add := func(l *plotting.Line, x float64, variant, measure string) (unit string) {
		mean, low, high, unit := ours(variant, measure)
		paper, ratio := f.ofPaper(variant, measure, ours)
		ratios = ratios || ratio
		l.X, l.Y, l.Paper = append(l.X, x), append(l.Y, mean), append(l.Paper, paper)
		l.Low, l.High = append(l.Low, low), append(l.High, high)
		return unit
	}
	for _, me := range p.measures {
		panel := plotting.Panel{LogX: p.logX, Points: true}
		unit := ""
		if p.kind == "bars" {
			panel.Lines = []plotting.Line{{Name: me}}
			for _, v := range p.variants {
				panel.Categories = append(panel.Categories, DisplayName(v))
				unit = cmp.Or(add(&panel.Lines[0], 0, v, me), unit)
			}
		} else {
			for _, v := range p.variants {
				name := DisplayName(f.places[v].line)
				i := slices.IndexFunc(panel.Lines, func(l plotting.Line) bool { return l.Name == name })
				if i < 0 {
					i = len(panel.Lines)
					panel.Lines = append(panel.Lines, plotting.Line{Name: name})
				}
				unit = cmp.Or(add(&panel.Lines[i], f.places[v].x, v, me), unit)
			}
		}
		if panel.Y = DisplayName(me); unit != "" {
			panel.Y += " (" + unit + ")"
		}
		panel = p.axes(panel)
		if last := len(out) - 1; p.kind == "bars" && last >= 0 && units[last] == unit && plotting.OneAxis(append(out[last].Lines, panel.Lines...)...) {
			out[last].Lines = append(out[last].Lines, panel.Lines...)
			if p.y == "" {
				out[last].Y = cmp.Or(quantities[unit], "value")
			}
			if p.y == "" && unit != "" {
				out[last].Y += " (" + unit + ")"
			}
			continue
		}
		out, units = append(out, panel), append(units, unit)
	}
	if len(out) > 0 {
		out[0].Title = p.title
	}
	for i := range out {
		if ratios {
			out[i].Paper = "the paper's, ratios from ours"
		}
	}
	return out
}

// quantities has the quantity of each unit, for axes with several measures.
var quantities = map[string]string{"µs": "time", "KB": "memory", "Gb/s": "rate", "%": "part"}

// proper has the names of systems and laws as people write them.
var proper = map[string]string{
	"dsh": "DSH", "sih": "SIH", "spfc": "SPFC", "st": "ST", "dt": "DT", "pacc": "PACC", "dcqcn": "DCQCN", "hpcc": "HPCC", "timely": "TIMELY",
	"aimd": "AIMD", "d2tcp": "D2TCP", "wrr": "WRR", "powertcp": "PowerTCP", "soze": "Söze", "prioplus": "PrioPlus", "swift": "Swift", "ledbat": "LEDBAT", "none": "no law",
}

var word = regexp.MustCompile(`\pL[\pL\d]*`)

// DisplayName returns a name of an experiment file, such as "soze", as text for people writes it, "Söze".
func DisplayName(name string) string {
	return word.ReplaceAllStringFunc(name, func(w string) string {
		if w == "none" && name == w {
			return w
		}
		return cmp.Or(proper[w], w)
	})
}

// time draws one line per variant if the picture has one name, else a panel per variant.
func (p picture) time(of map[string][]*Outcome) (out []plotting.Panel) {
	y := map[string]string{"goodput": "goodput (Gb/s)", "queue": "queue (KB)"}[p.what]
	panels := map[string]*plotting.Panel{}
	var order []string
	p.each(of, func(variant, name string, o *Outcome) {
		title := p.title
		if len(p.of) > 1 && variant != "" {
			title += ": " + DisplayName(variant)
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

// label names a line by its difference from the other lines of its panel.
func (p picture) label(variant, name string) string {
	switch {
	case len(p.of) == 1 && variant != "":
		return DisplayName(variant)
	case p.kind == "cdf" && len(p.variants) > 1:
		return DisplayName(variant) + ", " + DisplayName(name)
	}
	return DisplayName(name)
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

// WritePictures draws a file's pictures into a directory, each as <experiment>-<plot>.<format>, in each of the
// given formats of package plotting.
func (f *File) WritePictures(dir string, r *Report, formats ...string) error {
	_, of := r.byVariant()
	return f.writePictures(dir, of, r.lookup(), formats...)
}

func (f *File) writePictures(dir string, of map[string][]*Outcome, ours lookup, formats ...string) error {
	w := &writer{dir: dir}
	for _, p := range f.pictures {
		for _, format := range formats {
			w.picture(fmt.Sprintf("%s-%s.%s", f.Name, p.name, format), f.panels(p, of, ours)...)
		}
	}
	return w.err
}

// Redraw draws a file's pictures from a record into a directory, as SVG. A record has no series over time and no
// distributions. For these Redraw runs the first seed of the variants that they show.
func (f *File) Redraw(ctx context.Context, dir string, r *Record) error {
	shown := map[string]bool{}
	for _, p := range f.pictures {
		for _, v := range p.variants {
			shown[v] = shown[v] || p.kind == "time" || p.kind == "cdf"
		}
	}
	run := *f
	run.Plans = slices.DeleteFunc(slices.Clone(f.Plans), func(p *Plan) bool { return !shown[p.Variant] })
	of := map[string][]*Outcome{}
	if len(run.Plans) > 0 {
		rep, err := (&Batch{File: &run, Seed: r.Seed, Seeds: 1, Shards: 1}).Run(ctx)
		if err != nil {
			return err
		}
		_, of = rep.byVariant()
	}
	return f.writePictures(dir, of, r.lookup(), "svg")
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
			for _, panel := range new(File).panels(p, of, nil) {
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
