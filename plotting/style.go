package plotting

import (
	"image/color"

	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// okabeIto are colours that people with any of the usual colour deficiencies tell apart (Okabe and Ito, "Color
// Universal Design", 2008). The darkest on white is first. Grey replaces yellow, which is hard to see on white.
var okabeIto = []color.Color{
	rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xe69f00), rgb(0x56b4e9), rgb(0x000000), rgb(0x666666),
}

// dashes tell neighbours apart if there are more lines than colours in okabeIto.
var dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}}

// levelStyle is the style of a Level.
var levelStyle = draw.LineStyle{Color: color.Gray{Y: 0x40}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(4)}}

func rgb(c uint32) color.Color {
	return color.NRGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 0xff}
}

// styles returns n styles, no two of the same colour. Beyond eight the colours are a scale of luminance, which
// does not depend on telling hues. Later lines are thinner, so that the edges of a covered line stay visible.
func styles(n int) []draw.LineStyle {
	out := make([]draw.LineStyle, n)
	for i := range out {
		out[i].Width = vg.Points(1 + 1.6*float64(n-i)/float64(n))
		if n <= len(okabeIto) {
			out[i].Color = okabeIto[i]
			continue
		}
		out[i].Color, out[i].Dashes = luminance(float64(i)/float64(n-1)), dashes[i%len(dashes)]
	}
	return out
}

// luminance returns a colour of the scale: part 0 is dark, and 1 is the lightest colour that is visible on white.
func luminance(part float64) color.Color {
	scale := moreland.Kindlmann()
	scale.SetMin(0)
	scale.SetMax(1)
	c, err := scale.At(0.1 + 0.75*part)
	if err != nil { // out of range: not by the line above
		return color.Black
	}
	return c
}

// whiskerStyle draws a bar's spread, hollow a paper's value beside a bar, and shapes the points of lines.
var (
	whiskerStyle = draw.LineStyle{Color: color.Gray{Y: 0x20}, Width: vg.Points(1)}
	hollow       = draw.GlyphStyle{Color: color.Black, Radius: hollowRadius, Shape: draw.RingGlyph{}}
	shapes       = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
)
