package plotting

import (
	"image/color"

	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// okabeIto are colours that people with any of the usual colour deficiencies tell apart (Okabe
// and Ito, "Color Universal Design", 2008), the darkest on white first and yellow, which white
// swallows, replaced by a grey.
var okabeIto = []color.Color{
	rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xe69f00), rgb(0x56b4e9), rgb(0x000000), rgb(0x666666),
}

// dashes tell neighbours apart where lines are more than okabeIto has colours.
var dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}}

// levelStyle is that of a Level.
var levelStyle = draw.LineStyle{Color: color.Gray{Y: 0x40}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(4)}}

func rgb(c uint32) color.Color {
	return color.NRGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 0xff}
}

// styles returns n styles, no two of the same colour. Beyond eight the colours are a scale of
// luminance, which does not depend on telling hues. Lines get thinner, so that one that covers
// another leaves its edges to be seen.
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

// luminance returns the colour at a part of the scale, from 0, dark, to 1, as light as still
// shows on white.
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

// whiskerStyle is that of a bar's spread, hollow that of a paper's value beside a bar, shapes are those of points.
var (
	whiskerStyle = draw.LineStyle{Color: color.Gray{Y: 0x20}, Width: vg.Points(1)}
	hollow       = draw.GlyphStyle{Color: color.Black, Radius: hollowRadius, Shape: draw.RingGlyph{}}
	shapes       = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
)
