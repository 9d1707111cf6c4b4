package plotting

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// whiskers are the spread of bars.
type whiskers struct {
	low, high []float64
	offset    vg.Length // of the bars
	cap       vg.Length // half of its width
}

// Plot implements plot.Plotter.
func (w whiskers) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: color.Gray{Y: 0x20}, Width: vg.Points(1)}
	for j := range w.low {
		if !(w.low[j] < w.high[j]) {
			continue
		}
		at, low, high := x(float64(j))+w.offset, y(w.low[j]), y(w.high[j])
		c.StrokeLine2(style, at, low, at, high)
		c.StrokeLine2(style, at-w.cap, low, at+w.cap, low)
		c.StrokeLine2(style, at-w.cap, high, at+w.cap, high)
	}
}
