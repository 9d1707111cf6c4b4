package plotting

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// gap is the space between categories, in bars.
const gap = 0.7

// hollowRadius is the radius of the circle for a paper's value.
const hollowRadius = vg.Length(4)

// bars are drawn from the left, the first category on top. Each has its value as a label at its right.
type bars struct {
	list  []bar
	axis  axis
	style draw.TextStyle
}

// bar is one bar. Its numbers are in the unit of the axis, NaN for none.
type bar struct {
	at                      float64 // place from the top, below 0
	value, low, high, paper float64
	color                   color.Color
}

// addBars adds the lines as bars, and sets the axes.
func (p Panel) addBars(out *plot.Plot) {
	var values []float64
	for _, l := range p.Lines[:p.drawn()] {
		for _, list := range [][]float64{l.Y, l.Low, l.High, l.Paper} {
			values = append(values, list[:min(len(list), len(p.Categories))]...)
		}
	}
	b := bars{axis: axisOf(p.Y, values, spans(values), true), style: out.X.Tick.Label}
	b.style.XAlign, b.style.YAlign = draw.XLeft, draw.YCenter
	styles := styles(p.drawn())
	var ticks []plot.Tick
	place := 0.0
	for i, category := range p.Categories {
		ticks = append(ticks, plot.Tick{Value: place - float64(p.drawn()-1)/2, Label: category})
		for j, l := range p.Lines[:p.drawn()] {
			of := func(list []float64) float64 {
				if i < len(list) {
					return list[i] * b.axis.scale
				}
				return math.NaN()
			}
			b.list = append(b.list, bar{place, of(l.Y), of(l.Low), of(l.High), of(l.Paper), styles[j].Color})
			place--
		}
		place -= gap
	}
	for j, l := range p.Lines[:p.drawn()] {
		out.Legend.Add(l.Name, swatch{styles[j].Color})
	}
	out.Add(b)
	out.Y.Min, out.Y.Max = place+gap+0.3, 0.7
	out.Y.Tick.Marker = plot.ConstantTicks(ticks)
	longest := vg.Length(0)
	for _, category := range p.Categories {
		longest = max(longest, out.Y.Tick.Label.Width(category))
	}
	out.Y.Tick.Length, out.Y.Tick.Color = margin+longest/8, color.Transparent // room for a viewer's wider font
	out.Y.Label.Text = p.X
	b.axis.set(&out.X, false)
	if !b.axis.log {
		out.X.Min = min(out.X.Min, 0)
		if out.X.Min == out.X.Max {
			out.X.Max = 1
		}
	}
}

// DataRange implements plot.DataRanger. The axis has no other plotter.
func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax = math.Inf(1), math.Inf(-1)
	for _, bar := range b.list {
		for _, v := range []float64{bar.value, bar.low, bar.high, bar.paper} {
			if !math.IsNaN(v) && (v > 0 || !b.axis.log) {
				xmin, xmax = min(xmin, v), max(xmax, v)
			}
		}
		ymin, ymax = min(ymin, bar.at), max(ymax, bar.at)
	}
	if math.IsInf(xmin, 0) {
		xmin, xmax = 0, 0
	}
	if b.axis.log { // the shortest bar is seen, too
		xmin = math.Pow(10, math.Floor(math.Log10(xmin)-0.1))
	}
	return xmin, xmax, ymin, ymax
}

// label is the text at a bar's right: a value with its unit where the axis has several.
func (b bars) label(bar bar) string {
	if math.IsNaN(bar.value) {
		return "no value"
	}
	return b.axis.text(bar.value)
}

// end is where a bar or its whisker ends, on the axis x.
func (bar bar) end(x func(float64) vg.Length, zero vg.Length) vg.Length {
	end := zero
	for _, v := range []float64{bar.value, bar.high} {
		if !math.IsNaN(v) {
			end = max(end, x(v))
		}
	}
	return end
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := b.transforms(c, p)
	zero := c.Min.X
	if !b.axis.log {
		zero = x(0)
	}
	half := (y(0) - y(-1)) * 0.4
	for _, bar := range b.list {
		middle := y(bar.at)
		if !math.IsNaN(bar.value) {
			left, right := min(zero, x(bar.value)), max(zero, x(bar.value))
			c.FillPolygon(bar.color, []vg.Point{{X: left, Y: middle - half}, {X: right, Y: middle - half}, {X: right, Y: middle + half}, {X: left, Y: middle + half}})
		}
		end := bar.end(x, zero)
		if bar.low < bar.high {
			low, high := x(bar.low), x(bar.high)
			c.StrokeLine2(whiskerStyle, low, middle, high, middle)
			c.StrokeLine2(whiskerStyle, low, middle-half/2, low, middle+half/2)
			c.StrokeLine2(whiskerStyle, high, middle-half/2, high, middle+half/2)
		}
		text, start := b.label(bar), end+margin/2
		if !math.IsNaN(bar.paper) {
			at := x(bar.paper)
			c.DrawGlyph(hollow, vg.Point{X: at, Y: middle})
			if at+hollowRadius > start-margin/2 && at-hollowRadius < start+b.style.Width(text)+margin/2 {
				start = at + hollowRadius + margin/2
			}
		}
		c.FillText(b.style, vg.Point{X: start, Y: middle}, text)
	}
	c.StrokeLine2(draw.LineStyle{Color: color.Gray{Y: 0x40}, Width: vg.Points(0.5)}, zero, c.Min.Y, zero, c.Max.Y)
}

// transforms returns the transforms of the plot. A logarithmic axis has 0 and less at its beginning.
func (b bars) transforms(c draw.Canvas, p *plot.Plot) (x, y func(float64) vg.Length) {
	tx, ty := p.Transforms(&c)
	return func(v float64) vg.Length {
		if b.axis.log && v < p.X.Min {
			return c.Min.X
		}
		return tx(v)
	}, ty
}

// GlyphBoxes implements plot.GlyphBoxer: the axis leaves room for the labels.
func (b bars) GlyphBoxes(p *plot.Plot) (boxes []plot.GlyphBox) {
	for _, bar := range b.list {
		wide := b.style.Width(b.label(bar)) + margin
		for _, v := range []float64{p.X.Min, bar.value, bar.high, bar.paper} {
			if math.IsNaN(v) || v < p.X.Min {
				continue
			}
			room := wide
			if v == bar.paper {
				room += hollowRadius
			}
			boxes = append(boxes, plot.GlyphBox{X: p.X.Norm(v), Y: p.Y.Norm(bar.at), Rectangle: vg.Rectangle{Max: vg.Point{X: room}}})
		}
	}
	return boxes
}

// swatch is a bar in a legend.
type swatch struct{ color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(s.Color, []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y}})
}

// circle is a paper's value in a legend.
type circle struct{}

// Thumbnail implements plot.Thumbnailer.
func (circle) Thumbnail(c *draw.Canvas) { c.DrawGlyph(hollow, c.Center()) }
