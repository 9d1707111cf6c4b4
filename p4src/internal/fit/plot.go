package fit

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	figureWidth, figureHeight = 20 * vg.Centimeter, 11 * vg.Centimeter
	margin                    = vg.Centimeter / 4
	shades                    = 64
)

// SVG draws the share of every resource that each stage uses, a row a resource.
func (r *Report) SVG() ([]byte, error) {
	p, err := r.figure()
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(figureWidth, figureHeight)
	p.Draw(vgdraw.Crop(vgdraw.New(canvas), margin, -margin, margin, -margin))
	var out bytes.Buffer
	_, err = canvas.WriteTo(&out)
	return out.Bytes(), err
}

func (r *Report) figure() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s: share of each stage's resources in use (%%)", r.Chip)
	p.Title.Padding = margin
	p.X.Label.Text = "stage"
	grid := shares{r}
	heat := plotter.NewHeatMap(grid, paper(shades))
	heat.Min, heat.Max = 0, 100
	p.Add(heat)

	numbers, err := plotter.NewLabels(grid.numbers())
	if err != nil {
		return nil, err
	}
	for i := range numbers.TextStyle {
		numbers.TextStyle[i].Font.Size = vg.Points(8)
		numbers.TextStyle[i].XAlign, numbers.TextStyle[i].YAlign = -0.5, -0.5
	}
	p.Add(numbers)

	stages, kinds := grid.Dims()
	var x, y plot.ConstantTicks
	for i := range stages {
		x = append(x, plot.Tick{Value: float64(i), Label: fmt.Sprint(i)})
	}
	for i := range kinds {
		y = append(y, plot.Tick{Value: float64(i), Label: grid.kind(i).Title()})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = x, y
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(stages)-0.5, -0.5, float64(kinds)-0.5

	return p, nil
}

// shares is a report as a plotter.GridXYZ: columns are stages, rows kinds from the bottom.
type shares struct{ *Report }

func (s shares) kind(row int) Kind { return Kinds()[len(Kinds())-1-row] }

// Dims implements plotter.GridXYZ.
func (s shares) Dims() (c, r int) { return s.Stages, len(Kinds()) }

// X implements plotter.GridXYZ.
func (s shares) X(c int) float64 { return float64(c) }

// Y implements plotter.GridXYZ.
func (s shares) Y(r int) float64 { return float64(r) }

// Z implements plotter.GridXYZ: percent of what the stage has.
func (s shares) Z(c, r int) float64 {
	k := s.kind(r)
	if c >= len(s.Use) || s.PerStage[k] == 0 {
		return 0
	}
	return 100 * float64(s.Use[c][k]) / float64(s.PerStage[k])
}

// numbers labels the cells that are in use.
func (s shares) numbers() plotter.XYLabels {
	var l plotter.XYLabels
	stages, kinds := s.Dims()
	for c := range stages {
		for r := range kinds {
			if z := s.Z(c, r); z > 0 {
				l.XYs = append(l.XYs, plotter.XY{X: float64(c), Y: float64(r)})
				l.Labels = append(l.Labels, fmt.Sprintf("%.0f", z))
			}
		}
	}
	return l
}

// paper is a palette from white to a strong blue, light enough for black numbers.
type paper int

var _ palette.Palette = paper(0)

// Colors implements palette.Palette.
func (n paper) Colors() []color.Color {
	list := make([]color.Color, n)
	for i := range list {
		f := float64(i) / float64(n-1)
		list[i] = color.NRGBA{R: uint8(255 - 180*f), G: uint8(255 - 110*f), B: uint8(255 - 20*f), A: 255}
	}
	return list
}
