package plotting

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// many is a panel with n lines.
func many(n int) Panel {
	p := Panel{Title: "title", X: "time (s)", Y: "rate (Gb/s)"}
	for i := range n {
		p.Lines = append(p.Lines, Line{Name: fmt.Sprintf("line %d", i), X: []float64{0, 1}, Y: []float64{1, float64(i)}})
	}
	return p
}

func TestNoTwoLinesLookAlike(t *testing.T) {
	for n := 1; n <= MaxLines; n++ {
		seen := map[color.Color]int{}
		for i, s := range styles(n) {
			if before, ok := seen[s.Color]; ok {
				t.Errorf("of %d lines %d and %d are %v", n, before, i, s.Color)
			}
			seen[s.Color] = i
		}
	}
}

// deficiencies map linear RGB to the colours that a dichromat sees (Machado, Oliveira and Fernandes, "A
// Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1).
var deficiencies = map[string][3][3]float64{
	"none":         {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// lab returns a colour in CIE L*a*b*, whose distances match perceived differences.
func lab(c color.Color, see [3][3]float64) (v [3]float64) {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	var linear, seen [3]float64
	for i, b := range []uint8{n.R, n.G, n.B} {
		linear[i] = math.Pow((float64(b)/255+0.055)/1.055, 2.4)
	}
	for i := range seen {
		for j := range linear {
			seen[i] += see[i][j] * linear[j]
		}
		seen[i] = min(max(seen[i], 0), 1)
	}
	f := func(x float64) float64 {
		if x > 0.008856 {
			return math.Cbrt(x)
		}
		return 7.787*x + 16.0/116
	}
	x := f((0.4124*seen[0] + 0.3576*seen[1] + 0.1805*seen[2]) / 0.9505)
	y := f(0.2126*seen[0] + 0.7152*seen[1] + 0.0722*seen[2])
	z := f((0.0193*seen[0] + 0.1192*seen[1] + 0.9505*seen[2]) / 1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func distance(a, b color.Color, see [3][3]float64) float64 {
	p, q := lab(a, see), lab(b, see)
	return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
}

// TestColoursForAllEyes: any two colours of up to eight lines, and each of them and white, differ by clearly more
// than 2.3, the just noticeable distance.
func TestColoursForAllEyes(t *testing.T) {
	const enough = 10
	for eye, see := range deficiencies {
		for i, s := range styles(8) {
			if d := distance(s.Color, color.White, see); d < 2*enough {
				t.Errorf("%s: colour %d is only %.1f from white, want %d", eye, i, d, 2*enough)
			}
			for j, o := range styles(8)[:i] {
				if d := distance(s.Color, o.Color, see); d < enough {
					t.Errorf("%s: colours %d and %d are only %.1f apart, want %d", eye, j, i, d, enough)
				}
			}
		}
	}
}

// box is the position of a text.
type box struct {
	text string
	vg.Rectangle
}

// boxes returns the positions of the texts of panels, as drawn.
func boxes(t *testing.T, panels ...Panel) (list []box) {
	t.Helper()
	total := vg.Length(0)
	for _, p := range panels {
		total += p.height()
	}
	var c recorder.Canvas
	if err := paint(draw.NewCanvas(&c, width, total), panels); err != nil {
		t.Fatal(err)
	}
	type frame struct {
		origin vg.Point
		turned bool // by a quarter
	}
	at := []frame{{}}
	place := func(p vg.Point) vg.Point {
		f := at[len(at)-1]
		if f.turned {
			return vg.Point{X: f.origin.X - p.Y, Y: f.origin.Y + p.X}
		}
		return f.origin.Add(p)
	}
	for _, action := range c.Actions {
		switch a := action.(type) {
		case *recorder.Push:
			at = append(at, at[len(at)-1])
		case *recorder.Pop:
			at = at[:len(at)-1]
		case *recorder.Translate:
			at[len(at)-1].origin = place(a.Point)
		case *recorder.Rotate:
			at[len(at)-1].turned = a.Angle != 0
		case *recorder.FillString:
			face := font.DefaultCache.Lookup(a.Font, a.Size)
			from := place(a.Point)
			to := place(a.Point.Add(vg.Point{X: face.Width(a.String), Y: face.Extents().Ascent * 0.8}))
			list = append(list, box{a.String, vg.Rectangle{
				Min: vg.Point{X: min(from.X, to.X), Y: min(from.Y, to.Y)}, Max: vg.Point{X: max(from.X, to.X), Y: max(from.Y, to.Y)},
			}})
		}
	}
	return list
}

// hard are panels with long, many or close labels.
func hard() map[string][]Panel {
	nan := math.NaN()
	long := Panel{Title: "long names", Y: "FCT (µs)", Categories: []string{"α = 1/16, four classes, both", "a", "physical priorities with high ACKs"}}
	for i := range 6 {
		long.Lines = append(long.Lines, Line{
			Name: fmt.Sprintf("percentile %d of all flows", i), Y: []float64{0, 15e6, 3.25 * float64(i)}, Low: []float64{0, 1e6, nan}, High: []float64{0, 30e6, nan},
			Paper: []float64{nan, 15.2e6, 3.3},
		})
	}
	narrow := Panel{Title: "values of a kind", Y: "time (µs)", Categories: strings.Split("abcdefghijklmnopqrst", "")}
	for range 2 {
		l := Line{Name: "a line"}
		for i := range narrow.Categories {
			l.Y, l.Paper = append(l.Y, 1234.5678+float64(i)), append(l.Paper, 1300+float64(i))
		}
		narrow.Lines = append(narrow.Lines, l)
	}
	sweep := Panel{Title: "decades", X: "flows", Y: "slowdown p99 (µs)", LogX: true, Points: true}
	for i := range MaxLines {
		sweep.Lines = append(sweep.Lines, Line{Name: fmt.Sprintf("a long name of line %d", i), X: []float64{10, 1e4, 1e7}, Y: []float64{1, 1e5, 1.5e7}, Paper: []float64{nan, 1e4, nan}})
	}
	few := sweep
	few.Lines, few.LogX = []Line{{Name: "one", X: []float64{-0.00001, 0.00001}, Y: []float64{9e9, 10e9}}}, false
	return map[string][]Panel{"bars": {long, narrow}, "lines": {sweep, few, many(16)}, "both": {few, long, sweep}}
}

// TestLabelsDoNotMeet: no text of a picture touches another text or the picture's edge.
func TestLabelsDoNotMeet(t *testing.T) {
	for name, panels := range hard() {
		list := boxes(t, panels...)
		if len(list) < 20 {
			t.Errorf("%s: only %d texts", name, len(list))
		}
		for i, a := range list {
			if a.Min.X < 0 || a.Max.X > width || a.Min.Y < 0 {
				t.Errorf("%s: %q leaves the picture: %v", name, a.text, a.Rectangle)
			}
			for _, b := range list[:i] {
				if a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y {
					t.Errorf("%s: %q at %v and %q at %v meet", name, a.text, a.Rectangle, b.text, b.Rectangle)
				}
			}
		}
	}
}

// TestEachBarSaysItsValue: a bar has its value as a label, with a suitable unit, also if the value is 0, very small
// beside another, or missing.
func TestEachBarSaysItsValue(t *testing.T) {
	for want, p := range map[string]Panel{
		"0 12.3 no value":  {Y: "drops", Lines: []Line{{Y: []float64{0, 12.345, math.NaN()}}}},
		"5 µs 1.5 s 0 s":   {Y: "FCT (µs)", Lines: []Line{{Y: []float64{5, 1.5e6, 0}}}},
		"0.005 1.5 0.12":   {Y: "goodput (Gb/s)", Lines: []Line{{Y: []float64{0.005, 1.5, 0.12}}}},
		"1.5 0.02 0":       {Y: "FCT (µs)", Lines: []Line{{Y: []float64{1.5e6, 0.02e6, 0}}}},
		"1 KB 250 B 1 MB":  {Y: "queue (KB)", Lines: []Line{{Y: []float64{1, 0.25, 1000}}}},
		"-3 20 7":          {Y: "gap", Lines: []Line{{Y: []float64{-3, 20, 7}}}},
		"12345 300000 0.5": {Y: "frames", Lines: []Line{{Y: []float64{12345, 300000, 0.5}}}},
	} {
		p.Categories = []string{"one", "two", "three"}
		var got []string
		for _, b := range boxes(t, p) {
			got = append(got, b.text)
		}
		text := strings.Join(got, " ")
		if p.Y == "goodput (Gb/s)" {
			want = "5 Mb/s 1.5 Gb/s 120 Mb/s" // three decades
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", p.Y, text, want)
		}
	}
}

// TestEverySeriesHasAMark: a series that covers another line, or is a single point, still has a mark with its own shape
// or colour.
func TestEverySeriesHasAMark(t *testing.T) {
	p := Panel{Points: true}
	for i := range 5 {
		p.Lines = append(p.Lines, Line{Name: fmt.Sprint(i), X: []float64{1}, Y: []float64{1}})
	}
	drawn, err := p.plot()
	if err != nil {
		t.Fatal(err)
	}
	if boxes := drawn.GlyphBoxes(drawn); len(boxes) < len(p.Lines) {
		t.Errorf("%d marks for %d lines", len(boxes), len(p.Lines))
	}
	seen := map[string]bool{}
	for _, s := range shapes {
		seen[fmt.Sprintf("%T", s)] = true
	}
	if len(seen) != len(shapes) {
		t.Errorf("shapes %v are not all different", shapes)
	}
}

func render(t *testing.T, panels ...Panel) string {
	t.Helper()
	picture, err := Render("svg", panels...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := picture.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRender(t *testing.T) {
	text := func(panels ...Panel) string { return render(t, panels...) }
	two := many(2)
	two.Levels = []Level{{"Qth", 125}}
	got := text(two, many(18))
	for _, want := range []string{"line 0", "line 1<", "line 15", "(2 more)", "Qth", "time (s)", ">120<"} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if strings.Contains(got, "line 16") {
		t.Error("the seventeenth line is drawn")
	}
	if strings.Contains(text(many(1)), "line 0") {
		t.Error("a single line has a legend")
	}
	text(Panel{Title: "nothing was measured"}, Panel{Lines: []Line{{Name: "empty"}}})
	if _, err := Render("svg", Panel{Lines: []Line{{Name: "a", X: []float64{1}}}}); err == nil {
		t.Error("a line with more x than y is drawn")
	}
	if _, err := Render("gif", many(1)); err == nil {
		t.Error("gif is a format")
	}
}

func TestSave(t *testing.T) {
	for _, format := range Formats {
		file := filepath.Join(t.TempDir(), "picture."+format)
		if err := Save(file, many(2)); err != nil {
			t.Error(err)
		} else if st, err := os.Stat(file); err != nil || st.Size() < 1000 {
			t.Errorf("%s: %v, %v", file, st, err)
		}
	}
}

// Labels are a few round numbers without superfluous digits.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 94.9, "0 20 40 60 80"},
		{0, 70, "0 10 20 30 40 50 60 70"},
		{0.2, 4, "0.5 1.0 1.5 2.0 2.5 3.0 3.5 4.0"},
		{0, 5800, "0 1000 2000 3000 4000 5000"},
		{-0.01, 0.01, "-0.010 -0.005 0.000 0.005 0.010"},
	} {
		var got []string
		for _, tick := range (ticks{}).Ticks(c.low, c.high) {
			got = append(got, tick.Label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, s, c.want)
		}
	}
}

// TestAxes: bars that are all 0 have an axis that starts at 0; a logarithmic axis needs values above 0.
func TestAxes(t *testing.T) {
	zero := Panel{Categories: []string{"a", "b"}, Lines: []Line{{Name: "drops", X: []float64{0, 1}, Y: []float64{0, 0}}}}
	p, err := zero.plot()
	if err != nil || p.X.Min != 0 || p.X.Max < 1 {
		t.Errorf("zeros from %g to %g, %v", p.X.Min, p.X.Max, err)
	}
	for first, log := range map[float64]bool{10: true, 0: false} {
		sweep := Panel{LogX: true, Lines: []Line{{Name: "line", X: []float64{first, 1e6}, Y: []float64{1, 2}}}}
		p, err := sweep.plot()
		if _, ok := p.X.Scale.(plot.LogScale); err != nil || ok != log {
			t.Errorf("from %g on the scale is %T, %v", first, p.X.Scale, err)
		}
	}
}

// TestWhiskers: the axis covers the spread of bars, also if some bars have none.
func TestWhiskers(t *testing.T) {
	nan := math.NaN()
	p := Panel{Categories: []string{"a", "b", "c"}, Lines: []Line{
		{Name: "before", Y: []float64{1, 2, nan}, Low: []float64{0.5, 2, nan}, High: []float64{7, 2, nan}},
		{Name: "after", Y: []float64{1, 2, 6}},
	}}
	drawn, err := p.plot()
	if err != nil || drawn.X.Max < 7 || math.IsNaN(drawn.X.Max) {
		t.Fatalf("the axis ends at %v, want 7 or more; %v", drawn.X.Max, err)
	}
	strokes := func(p Panel) int { return strings.Count(render(t, p), "<path") }
	p.Lines[1].Y[2] = 8 // so that the axis is equal without whiskers
	with := strokes(p)
	p.Lines[0].Low, p.Lines[0].High = nil, nil
	if without := strokes(p); with != without+3 {
		t.Errorf("%d paths with a whisker, %d without, want 3 more", with, without)
	}
}

// TestPapersValuesAreHollow: each of the paper's values is a ring, and the legend explains it.
func TestPapersValuesAreHollow(t *testing.T) {
	line := Line{Name: "ours", X: []float64{1, 2}, Y: []float64{3, 4}, Paper: []float64{math.NaN(), 9}}
	for name, p := range map[string]Panel{"bars": {Categories: []string{"a", "b"}}, "lines": {Points: true}} {
		p.Lines = []Line{line}
		drawn, err := p.plot()
		if err != nil || max(drawn.X.Max, drawn.Y.Max) < 9 {
			t.Errorf("%s: axes end at %v and %v, want 9 to be seen; %v", name, drawn.X.Max, drawn.Y.Max, err)
		}
		if text := render(t, p); !strings.Contains(text, "the paper's") && !strings.Contains(text, "the paper&#39;s") {
			t.Errorf("%s: the legend does not name the paper's value", name)
		}
	}
}
