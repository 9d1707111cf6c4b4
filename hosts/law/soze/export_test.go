package soze

import (
	"math"

	"github.com/headgate/headgate/units"
)

// Rate returns the flow's payload rate by the law, before pacing's margin.
func (l *Law) Rate() units.Rate { return units.Rate(l.weight * math.Exp(l.lnX)) }

// Share returns the rate per weight that belongs to a queueing delay.
func (t *Target) Share(d units.Time) float64 { return math.Exp(t.lnShare(float64(d))) }

// Weight returns the flow's weight.
func (l *Law) Weight() float64 { return l.weight }
