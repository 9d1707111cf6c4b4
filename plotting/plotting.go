// Package plotting draws series as lines, in panels one above the other. The legend of a panel is
// beside the data, and no two lines of a panel look alike.
//
// Start at Panel and Save; style.go has colours and legends.
package plotting

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Formats are the endings of file names that Save and Render take.
var Formats = []string{"svg", "png", "pdf"}

// Check says of a file's name that ends in none of Formats what is allowed.
func Check(file string) error {
	if !slices.Contains(Formats, strings.TrimPrefix(filepath.Ext(file), ".")) {
		return fmt.Errorf("%q is not allowed: want a name that ends in .%s", file, strings.Join(Formats, ", ."))
	}
	return nil
}

// MaxLines is how many lines a panel draws; more could not be told apart. The legend says how
// many were left out.
const MaxLines = 16

// headroom is the part of a y axis above its greatest value, so that a line there shows whole.
const headroom = 0.04

// Line is one series: a point (X[i], Y[i]) for each i.
type Line struct {
	Name string
	X, Y []float64
	// Low and High are the spread of each bar, drawn as a whisker; nil for none. They are not looked at without
	// Categories.
	Low, High []float64
}

// Level is a horizontal line across the panel, for a value that lines are held against.
type Level struct {
	Name string
	Y    float64
}

// Panel is one plot. The vertical axis begins at 0 or below. A panel with a single line and no
// level has no legend.
type Panel struct {
	Title, X, Y string
	Lines       []Line
	Levels      []Level
	// Categories turn the lines into bars: Y[i] of each line stands at the category i, the lines
	// side by side. X of the lines is not looked at.
	Categories []string
	LogX       bool // the horizontal axis is logarithmic, if all its values are above 0
}

// Sizes of a picture.
const (
	width  = 24 * vg.Centimeter
	height = 10 * vg.Centimeter // of a panel
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
	canvas, err := draw.NewFormattedCanvas(width, height*vg.Length(len(panels)), format)
	if err != nil {
		return nil, err
	}
	rows := make([][]*plot.Plot, len(panels))
	legends := make([]plot.Legend, len(panels))
	strip := vg.Length(0) // width of the widest legend, with room for a viewer's wider font
	for i, p := range panels {
		drawn, err := p.plot()
		if err != nil {
			return nil, err
		}
		legends[i], drawn.Legend = drawn.Legend, plot.NewLegend()
		rows[i] = []*plot.Plot{drawn}
		if len(p.Lines)+len(p.Levels) > 1 {
			strip = max(strip, 1.3*legends[i].Rectangle(draw.New(canvas)).Size().X)
		}
	}
	left, right := split(draw.New(canvas), strip)
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: 2 * margin, PadY: 2 * margin}
	for i, row := range plot.Align(rows, tiles, left) {
		rows[i][0].Draw(row[0])
		if strip > 0 {
			beside := row[0]
			beside.Min.X, beside.Max.X = right.Min.X, right.Max.X
			legends[i].Draw(draw.Crop(beside, 0, -margin, 0, -2*margin))
		}
	}
	return canvas, nil
}

// split divides a canvas into that of the data and a strip at its right for the legends.
func split(c draw.Canvas, strip vg.Length) (data, legend draw.Canvas) {
	return draw.Crop(c, 0, -strip, 0, 0), draw.Crop(c, c.Max.X-c.Min.X-strip, 0, 0, 0)
}

// plot makes a panel's plot, with its legend's entries.
func (p Panel) plot() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text, out.X.Label.Text, out.Y.Label.Text = p.Title, p.X, p.Y
	out.Title.Padding = margin
	out.Legend.Top, out.Legend.Left, out.Legend.Padding = true, true, margin/2
	out.Add(plotter.NewGrid())
	lines := p.Lines[:min(len(p.Lines), MaxLines)]
	styles := styles(len(lines))
	for i, l := range lines {
		if len(l.X) != len(l.Y) {
			return nil, fmt.Errorf("line %s has %d values of x and %d of y", l.Name, len(l.X), len(l.Y))
		}
		if len(l.X) == 0 {
			continue
		}
		if len(p.Categories) > 0 {
			bars, err := p.bars(i, len(lines), styles[i].Color)
			if err != nil {
				return nil, err
			}
			out.Add(bars)
			out.Legend.Add(l.Name, bars)
			if n := min(len(l.Low), len(l.High), len(p.Categories)); n > 0 {
				out.Add(whiskers{l.Low[:n], l.High[:n], bars.Offset, min(bars.Width/4, margin/2)})
				for _, y := range l.High[:n] {
					if y > out.Y.Max { // of a number
						out.Y.Max = y
					}
				}
			}
			continue
		}
		points := make(plotter.XYs, len(l.X))
		for j := range points {
			points[j] = plotter.XY{X: l.X[j], Y: l.Y[j]}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("line %s: %w", l.Name, err)
		}
		line.LineStyle = styles[i]
		out.Add(line)
		out.Legend.Add(l.Name, line)
	}
	if len(p.Categories) > 0 {
		out.NominalX(p.Categories...)
		if n := longest(p.Categories); n*len(p.Categories) > 80 { // they would run into each other
			out.X.Tick.Label.Rotation, out.X.Tick.Label.XAlign, out.X.Tick.Label.YAlign = math.Pi/6, draw.XRight, draw.YTop
		}
	}
	for _, l := range p.Levels {
		level := plotter.NewFunction(func(float64) float64 { return l.Y })
		level.Samples, level.LineStyle = 2, levelStyle
		out.Add(level)
		out.Y.Max = max(out.Y.Max, l.Y)
		out.Legend.Add(l.Name, level)
	}
	if n := len(p.Lines) - len(lines); n > 0 {
		out.Legend.Add(fmt.Sprintf("(%d more)", n))
	}
	out.Y.Min = min(out.Y.Min, 0)
	if out.Y.Min == 0 && out.Y.Max == 0 { // gonum would draw from -1 to 1
		out.Y.Max = 1
	}
	out.Y.Max += headroom * (out.Y.Max - out.Y.Min)
	out.Y.Tick.Marker = ticks{}
	if len(p.Categories) == 0 {
		out.X.Tick.Marker = ticks{}
		if p.LogX && out.X.Min > 0 {
			out.X.Scale, out.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
	}
	return out, nil
}

// longest returns the length of the longest name.
func longest(names []string) (n int) {
	for _, name := range names {
		n = max(n, utf8.RuneCountInString(name))
	}
	return n
}

// bars makes the bars of line i of n. A value that is not a number has none.
func (p Panel) bars(i, n int, colour color.Color) (*plotter.BarChart, error) {
	values := make(plotter.Values, len(p.Categories))
	for j, y := range p.Lines[i].Y[:min(len(p.Lines[i].Y), len(values))] {
		if !math.IsNaN(y) {
			values[j] = y
		}
	}
	wide := (width - 8*margin) * 0.55 / vg.Length(len(p.Categories)*n)
	bars, err := plotter.NewBarChart(values, wide)
	if err != nil {
		return nil, fmt.Errorf("bars %s: %w", p.Lines[i].Name, err)
	}
	bars.Color, bars.LineStyle.Width = colour, 0
	bars.Offset = wide * (vg.Length(i) - vg.Length(n-1)/2)
	return bars, nil
}
