package workload

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/headgate/headgate/units"
)

// Delays is a distribution of times: a cumulative distribution, linear between points. It
// implements sim.Noise.
type Delays struct{ ps *Sizes }

// NewDelays returns the distribution through points of a time and its cumulative
// probability in percent, neither falling, from 0 to 100 %, times a factor.
func NewDelays(at []units.Time, percent []float64, factor float64) (*Delays, error) {
	var lines strings.Builder
	for i := range at {
		lines.WriteString(strconv.FormatFloat(float64(at[i])*factor, 'f', 0, 64) + " " + strconv.FormatFloat(percent[i], 'g', -1, 64) + "\n")
	}
	s, err := ReadSizes(strings.NewReader(lines.String()))
	if err != nil {
		return nil, err
	}
	return &Delays{s}, nil
}

// Draw returns a time.
func (d *Delays) Draw(rng *rand.Rand) units.Time { return units.Time(d.ps.Draw(rng)) }
