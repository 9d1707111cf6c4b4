// Package figure draws the phase margin of PACC's controller over its weights.
package figure

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/headgate/headgate/cnpgen"
)

const (
	cells            = 100         // cells of the figure in each direction
	lowest, highest  = -90.0, 90.0 // the ends of the color scale, grey in the middle
	width, height    = 18 * vg.Centimeter, 14 * vg.Centimeter
	barWidth         = 3 * vg.Centimeter
	barMargin        = vg.Centimeter / 2
	defaultFigureEnd = 1.0 // the paper's figure ends there
)

// surface is a function of both weights, sampled from 0 to end. It implements plotter.GridXYZ.
type surface struct {
	end float64
	z   []float64
}

func newSurface(end float64, of func(beta1, beta2 float64) float64) *surface {
	s := &surface{end: end, z: make([]float64, cells*cells)}
	for r := range cells {
		for c := range cells {
			s.z[r*cells+c] = of(s.X(c), s.Y(r))
		}
	}
	return s
}

// Dims implements plotter.GridXYZ.
func (s *surface) Dims() (c, r int) { return cells, cells }

// Z implements plotter.GridXYZ.
func (s *surface) Z(c, r int) float64 { return s.z[r*cells+c] }

// X implements plotter.GridXYZ: β1 at the middle of a column.
func (s *surface) X(c int) float64 { return s.end * (float64(c) + 0.5) / cells }

// Y implements plotter.GridXYZ: β2 at the middle of a row.
func (s *surface) Y(r int) float64 { return s.X(r) }

// Draw writes the paper's figure 5 into a file whose name ends in .svg or .png. The figure shows the phase
// margin over both weights, the borders of stability by both analyses, and the requested and proposed weights.
func Draw(name string, s, proposed cnpgen.Stability, r cnpgen.Reaction) error {
	end := defaultFigureEnd
	for end < 1.05*max(s.Params.Beta1, s.Params.Beta2) {
		end *= 2
	}
	with := func(b1, b2 float64) cnpgen.Params {
		p := s.Params
		p.Beta1, p.Beta2 = b1, b2
		return p
	}
	margin := newSurface(end, func(b1, b2 float64) float64 { return with(b1, b2).PhaseMargin(s.Rate, r).Phase })
	radius := newSurface(end, func(b1, b2 float64) float64 { return math.Log(with(b1, b2).SpectralRadius(s.Rate, r)) })

	diverging := moreland.SmoothBlueRed()
	diverging.SetMin(lowest)
	diverging.SetMax(highest)
	colors := palette.Reverse(diverging) // blue is stable
	heat := plotter.NewHeatMap(margin, colors.Palette(255))
	heat.Min, heat.Max, heat.Rasterized = lowest, highest, true
	heat.Underflow, heat.Overflow = mustColor(colors.At(lowest)), mustColor(colors.At(highest))

	p := plot.New()
	p.Title.Text = fmt.Sprintf("PACC at %v, interval %v", s.Rate, s.Params.Interval)
	p.X.Label.Text, p.Y.Label.Text = "β1 (CNPs per KB)", "β2 (CNPs per KB)"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, end, 0, end
	p.Add(heat)
	p.Add(border(margin, nil), border(radius, []vg.Length{vg.Points(5), vg.Points(3)}))
	for _, l := range []struct {
		name   string
		dashes []vg.Length
	}{{"phase margin 0°", nil}, {fmt.Sprintf("spectral radius 1, %d flows", s.Flows), []vg.Length{vg.Points(5), vg.Points(3)}}} {
		p.Legend.Add(l.name, &plotter.Line{LineStyle: vgdraw.LineStyle{Color: color.Black, Width: vg.Points(1.5), Dashes: l.dashes}})
	}
	if err := mark(p, fmt.Sprintf("asked for: %+.0f°", s.Phase), s, vgdraw.CrossGlyph{}); err != nil {
		return err
	}
	if proposed.Params != s.Params {
		if err := mark(p, fmt.Sprintf("proposed: %+.0f°", proposed.Phase), proposed, vgdraw.RingGlyph{}); err != nil {
			return err
		}
	}
	p.Legend.Top, p.Legend.XOffs, p.Legend.YOffs, p.Legend.Padding = true, -barMargin, -barMargin, vg.Points(2)

	bar := plot.New()
	bar.Add(&plotter.ColorBar{ColorMap: colors, Vertical: true})
	bar.HideX()
	bar.Y.Label.Text = "phase margin (degrees)"
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(render(f, filepath.Ext(name), p, bar), f.Close())
}

func mustColor(c color.Color, err error) color.Color {
	if err != nil {
		return color.Gray{Y: 128}
	}
	return c
}

func border(s *surface, dashes []vg.Length) *plotter.Contour {
	c := plotter.NewContour(s, []float64{0}, nil)
	c.LineStyles = []vgdraw.LineStyle{{Color: color.Black, Width: vg.Points(1.5), Dashes: dashes}}
	c.Underflow, c.Overflow = color.Black, color.Black
	return c
}

func mark(p *plot.Plot, name string, s cnpgen.Stability, shape vgdraw.GlyphDrawer) error {
	dot, err := plotter.NewScatter(plotter.XYs{{X: s.Params.Beta1, Y: s.Params.Beta2}})
	if err != nil {
		return err
	}
	dot.Shape, dot.Radius, dot.Color = shape, vg.Points(4), color.Black
	p.Add(dot)
	p.Legend.Add(name, dot)
	return nil
}

func render(w io.Writer, format string, p, bar *plot.Plot) error {
	canvas, err := vgdraw.NewFormattedCanvas(width, height, strings.ToLower(strings.TrimPrefix(format, ".")))
	if err != nil {
		return err
	}
	all := vgdraw.New(canvas)
	p.Draw(vgdraw.Crop(all, 0, -barWidth, 0, 0))
	bar.Draw(vgdraw.Crop(all, width-barWidth, -barMargin, 2*barMargin, -barMargin))
	_, err = canvas.WriteTo(w)
	return err
}
