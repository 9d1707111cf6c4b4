package plotting

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// mostTicks is how many labels an axis has at most.
const mostTicks = 8

// ticks labels round numbers, as many as can be read, without digits that say nothing.
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
	// Adding nothing makes of −0, which has a sign of its own, 0.
	for i := math.Ceil(low/step-1e-9) + 0; i <= high/step+1e-9; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', max(digits, 0), 64)})
	}
	return out
}
