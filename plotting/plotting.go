// Package plotting draws series as lines and numbers as bars, in panels one above the other. The legend of a panel is
// beside the data, no two lines of a panel look alike, and each bar says its value.
//
// Start at Panel and Save; style.go has the colours, axis.go the axes, bars.go the bars.
package plotting

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Formats are the endings of file names that Save and Render take.
var Formats = []string{"svg", "png", "pdf"}

// Check returns an error if a file's name ends in none of Formats.
func Check(file string) error {
	if !slices.Contains(Formats, strings.TrimPrefix(filepath.Ext(file), ".")) {
		return fmt.Errorf("%q is not allowed: want a name that ends in .%s", file, strings.Join(Formats, ", ."))
	}
	return nil
}

// MaxLines is the largest number of lines that a panel draws, because a reader could not distinguish more. The legend
// says how many were left out.
const MaxLines = 16

// headroom is the part of a y axis above its greatest value, so that a line there shows whole.
const headroom = 0.04

// Line is one series: a point (X[i], Y[i]) for each i.
type Line struct {
	Name string
	X, Y []float64
	// Low and High are the spread of each bar, drawn as a whisker; nil for none. They are ignored without
	// Categories.
	Low, High []float64
	// Paper are values that somebody else measured at the same places, drawn as hollow circles. NaN means no
	// value; nil means none at all.
	Paper []float64
}

// Level is a horizontal line across the panel, for a value that lines are compared with.
type Level struct {
	Name string
	Y    float64
}

// Panel is one plot. If the title of an axis ends in a unit of time, memory or rate in brackets, such as "queue
// (KB)", the values are in that unit. The axis then uses the unit of the same kind that suits its greatest
// value. The vertical axis begins at 0 or below unless it is logarithmic. A panel with a single line, no level
// and no value of a paper has no legend.
type Panel struct {
	Title, X, Y string
	Lines       []Line
	Levels      []Level
	// Categories turn the lines into bars from left to right: Y[i] of each line stands at the category i, the
	// lines one below the other. X of the lines is ignored. The bars' axis is logarithmic if the values above 0
	// span more than two decades; a bar of 0 then has only its label.
	Categories []string
	LogX       bool // the horizontal axis is logarithmic, if all its values are above 0
	// Points marks each point of the lines. The vertical axis is logarithmic if the values are above 0 and span
	// more than two decades.
	Points bool
	// Paper names the values of Lines.Paper in the legend; "" for "the paper's".
	Paper string
}

// Sizes of a picture.
const (
	width  = 24 * vg.Centimeter
	height = 9 * vg.Centimeter // height of a panel with lines
	above  = 2.4 * vg.Centimeter
	row    = 0.5 * vg.Centimeter // height of a bar; above is the rest of a panel with bars
	margin = vg.Length(6)
)

// Save draws panels into a file, whose name ends in one of Formats.
func Save(file string, panels ...Panel) error {
	picture, err := Render(strings.TrimPrefix(filepath.Ext(file), "."), panels...)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := picture.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Render draws panels in one of Formats.
func Render(format string, panels ...Panel) (io.WriterTo, error) {
	total := vg.Length(0)
	for _, p := range panels {
		total += p.height()
	}
	canvas, err := draw.NewFormattedCanvas(width, total, format)
	if err != nil {
		return nil, err
	}
	if err := paint(draw.New(canvas), panels); err != nil {
		return nil, err
	}
	if format != "svg" {
		return canvas, nil
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	// Viewers without the font have one of the same widths.
	return bytes.NewBuffer(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))), nil
}

// height returns the height of a panel, with its margins.
func (p Panel) height() vg.Length {
	if len(p.Categories) > 0 {
		return above + row*vg.Length(float64(len(p.Categories))*(float64(p.drawn())+gap))
	}
	return height
}

func (p Panel) drawn() int { return min(len(p.Lines), MaxLines) }

// paint draws panels from top to bottom, their data areas below each other.
func paint(canvas draw.Canvas, panels []Panel) error {
	plots := make([]*plot.Plot, len(panels))
	legends := make([]*plot.Legend, len(panels))
	strip := vg.Length(0) // width of the widest legend, with room for a viewer's wider font
	for i, p := range panels {
		drawn, err := p.plot()
		if err != nil {
			return err
		}
		legend := drawn.Legend
		plots[i], drawn.Legend = drawn, plot.NewLegend()
		if p.hasLegend() && (i == 0 || !slices.EqualFunc(p.Lines, panels[i-1].Lines, func(a, b Line) bool { return a.Name == b.Name }) || len(p.Levels) > 0 || p.paper()) {
			legends[i] = &legend
			strip = max(strip, 1.1*legend.Rectangle(canvas).Size().X+2*margin)
		}
	}
	top, left := canvas.Max.Y, vg.Length(0)
	areas := make([]draw.Canvas, len(panels))
	for i, p := range panels {
		areas[i] = canvas
		areas[i].Max.Y, areas[i].Min.Y = top-margin, top-p.height()+margin
		areas[i].Min.X, areas[i].Max.X = canvas.Min.X+margin, canvas.Max.X-strip-2*margin
		left = max(left, plots[i].DataCanvas(areas[i]).Min.X)
		top -= p.height()
	}
	for i, area := range areas {
		area.Min.X += left - plots[i].DataCanvas(area).Min.X
		fit(&plots[i].Title.TextStyle, plots[i].Title.Text, area.Size().X)
		fit(&plots[i].Y.Label.TextStyle, plots[i].Y.Label.Text, 0.8*area.Size().Y) // the axis is shorter than the panel
		plots[i].Draw(area)
		if legends[i] != nil {
			area.Min.X, area.Max.X = canvas.Max.X-strip, canvas.Max.X
			legends[i].Draw(draw.Crop(area, 0, 0, 0, -3*margin))
		}
	}
	return nil
}

// fit makes a text smaller if it would not fit its room in a viewer's wider font.
func fit(style *draw.TextStyle, text string, room vg.Length) {
	if wide := 1.15 * style.Width(text); wide > room {
		style.Font.Size *= room / wide
	}
}

func (p Panel) hasLegend() bool { return len(p.Lines)+len(p.Levels) > 1 || p.paper() }

// paper reports whether a line has values of a paper.
func (p Panel) paper() bool {
	return slices.ContainsFunc(p.Lines, func(l Line) bool {
		return slices.ContainsFunc(l.Paper, func(y float64) bool { return !math.IsNaN(y) })
	})
}

// plot makes a panel's plot, with its legend's entries.
func (p Panel) plot() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text, out.Title.Padding = p.Title, margin
	out.Legend.Top, out.Legend.Left, out.Legend.Padding = true, true, margin/2
	for _, s := range []*draw.TextStyle{&out.Title.TextStyle, &out.X.Label.TextStyle, &out.Y.Label.TextStyle, &out.X.Tick.Label, &out.Y.Tick.Label, &out.Legend.TextStyle} {
		s.Font.Variant = "Sans"
		s.Font.Size = min(s.Font.Size, 11)
	}
	for _, l := range p.Lines {
		if len(p.Categories) == 0 && len(l.X) != len(l.Y) {
			return nil, fmt.Errorf("line %s has %d values of x and %d of y", l.Name, len(l.X), len(l.Y))
		}
	}
	if len(p.Categories) > 0 {
		p.addBars(out)
	} else if err := p.addLines(out); err != nil {
		return nil, err
	}
	if p.paper() {
		name := p.Paper
		if name == "" {
			name = "the paper's"
		}
		out.Legend.Add(name, circle{})
	}
	if n := len(p.Lines) - p.drawn(); n > 0 {
		out.Legend.Add(fmt.Sprintf("(%d more)", n))
	}
	return out, nil
}

// addLines adds the lines and levels, and sets the axes.
func (p Panel) addLines(out *plot.Plot) error {
	var xs, ys []float64
	for _, l := range p.Lines[:p.drawn()] {
		xs, ys = append(xs, l.X...), append(append(ys, l.Y...), l.Paper...)
	}
	for _, l := range p.Levels {
		ys = append(ys, l.Y)
	}
	x, y := axisOf(p.X, xs, p.LogX, false), axisOf(p.Y, ys, p.Points && spans(ys), false)
	out.Add(plotter.NewGrid())
	for i, l := range p.Lines[:p.drawn()] {
		points, papers := plotter.XYs{}, plotter.XYs{}
		for j := range l.X {
			if at := (plotter.XY{X: l.X[j] * x.scale, Y: l.Y[j] * y.scale}); !math.IsNaN(at.X) && !math.IsNaN(at.Y) {
				points = append(points, at)
			}
			if j < len(l.Paper) && !math.IsNaN(l.Paper[j]) {
				papers = append(papers, plotter.XY{X: l.X[j] * x.scale, Y: l.Paper[j] * y.scale})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("line %s: %w", l.Name, err)
		}
		line.LineStyle = styles(p.drawn())[i]
		out.Add(line)
		shown := []plot.Thumbnailer{line}
		if p.Points {
			dots.GlyphStyle = draw.GlyphStyle{Color: line.Color, Radius: vg.Points(3), Shape: shapes[i%len(shapes)]}
			out.Add(dots)
			shown = append(shown, dots)
		}
		out.Legend.Add(l.Name, shown...)
		if len(papers) > 0 {
			hollow, err := plotter.NewScatter(papers)
			if err != nil {
				return fmt.Errorf("line %s, the paper's: %w", l.Name, err)
			}
			hollow.GlyphStyle = draw.GlyphStyle{Color: line.Color, Radius: hollowRadius, Shape: draw.RingGlyph{}}
			out.Add(hollow)
		}
	}
	for _, l := range p.Levels {
		level := plotter.NewFunction(func(float64) float64 { return l.Y * y.scale })
		level.Samples, level.LineStyle = 2, levelStyle
		out.Add(level)
		out.Y.Max = max(out.Y.Max, l.Y*y.scale)
		out.Legend.Add(l.Name, level)
	}
	x.set(&out.X, false)
	y.set(&out.Y, true)
	return nil
}
