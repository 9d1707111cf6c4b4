package plotting

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// kinds lists the units of each kind, from small to large, with their size in the kind's first unit.
var kinds = [][]struct {
	name string
	size float64
}{
	{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}},
	{{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}},
	{{"b/s", 1}, {"kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12}},
}

// axis is the unit and the scale in which values are shown.
type axis struct {
	title string  // without the unit where its kind is known
	log   bool    // labels have a unit each
	kind  int     // index into kinds, -1 for another unit or none
	unit  int     // index of the unit of that kind in which the values are shown
	scale float64 // makes values of that unit from given ones
}

// axisOf chooses the unit of an axis whose title ends in a unit in brackets. log asks for a logarithmic axis. The
// axis is logarithmic only if all values are above 0, or, if zero is set, at least 0.
func axisOf(title string, values []float64, log, zero bool) axis {
	a := axis{title: title, kind: -1, scale: 1}
	least, most := math.Inf(1), 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			least, most = min(least, v), max(most, math.Abs(v))
		}
	}
	a.log = log && most > 0 && (least > 0 || least == 0 && zero)
	for kind, list := range kinds {
		for _, given := range list {
			name, ok := strings.CutSuffix(title, " ("+given.name+")")
			if !ok {
				continue
			}
			a.title, a.kind = name, kind
			for unit, u := range list {
				if unit == 0 || most*given.size >= u.size {
					a.unit, a.scale = unit, given.size/u.size
				}
			}
		}
	}
	return a
}

// OneAxis reports whether bars fit on one linear axis.
func OneAxis(lines ...Line) bool {
	var values []float64
	for _, l := range lines {
		values = append(values, l.Y...)
	}
	return !spans(values)
}

// spans reports whether the values above 0 span more than two decades.
func spans(values []float64) bool {
	least, most := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	return most > 100*least
}

// text returns a value of the axis to three digits, with its unit on a logarithmic axis.
func (a axis) text(v float64) string {
	if a.kind < 0 || !a.log {
		return digits(v)
	}
	list := kinds[a.kind]
	unit := a.unit
	for unit > 0 && math.Abs(v)*list[a.unit].size < list[unit].size && v != 0 {
		unit--
	}
	for unit+1 < len(list) && math.Abs(v)*list[a.unit].size >= list[unit+1].size {
		unit++
	}
	return digits(v*list[a.unit].size/list[unit].size) + " " + list[unit].name
}

// digits prints three significant digits, and larger integers in full.
func digits(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// set gives an axis its title, marks and scale. The range of values is set; a vertical axis begins at 0 or below.
func (a axis) set(out *plot.Axis, vertical bool) {
	out.Label.Text = a.title
	if a.log {
		out.Scale, out.Tick.Marker = plot.LogScale{}, logTicks{a}
		return
	}
	if a.kind >= 0 {
		out.Label.Text += " (" + kinds[a.kind][a.unit].name + ")"
	}
	out.Tick.Marker = ticks{}
	if vertical {
		out.Min = min(out.Min, 0)
		if out.Min == 0 && out.Max == 0 { // gonum would draw from -1 to 1
			out.Max = 1
		}
		out.Max += headroom * (out.Max - out.Min)
	}
}

// logTicks labels powers of ten, and 2 and 5 times them if there are few.
type logTicks struct{ axis }

// Ticks implements plot.Ticker.
func (t logTicks) Ticks(low, high float64) (out []plot.Tick) {
	decades := math.Log10(high / low)
	for power := math.Floor(math.Log10(low) + 1e-9); power <= math.Log10(high)+1e-9; power++ {
		for times := 1.0; times < 10; times++ {
			v := times * math.Pow(10, power)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			tick := plot.Tick{Value: v}
			if times == 1 && (decades < mostTicks || int(power)%2 == 0) || (times == 2 || times == 5) && decades < 2.5 {
				tick.Label = t.text(v)
			}
			out = append(out, tick)
		}
	}
	return out
}

// mostTicks is how many labels an axis has at most.
const mostTicks = 8

// ticks labels round numbers, as many as can be read, without needless digits.
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(low, high float64) (out []plot.Tick) {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) {
		return plot.DefaultTicks{}.Ticks(low, high)
	}
	digits := -int(math.Floor(math.Log10(span / mostTicks)))
	step := math.Pow10(-digits)
	for _, times := range []float64{1, 2, 5, 10} {
		if span/(step*times) <= mostTicks {
			step *= times
			break
		}
	}
	// Adding 0 turns −0, which would print a sign, into 0.
	for i := math.Ceil(low/step-1e-9) + 0; i <= high/step+1e-9; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', max(digits, 0), 64)})
	}
	return out
}
