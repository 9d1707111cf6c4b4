package lawtest

import (
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/headgate/headgate/units"
)

// Goodput is the payload rate that a full link carries in full packets.
func Goodput(rate units.Rate) float64 {
	return float64(rate) * float64(MSS) / float64(Frame)
}

// Rates runs the network for a time and returns the flows' payload rates over it, in b/s.
func (n *Net) Rates(span units.Time) []float64 {
	from := make([]units.Bytes, len(n.Flows))
	for i, f := range n.Flows {
		from[i] = f.Delivered()
	}
	n.RunUntil(n.Now() + span)
	out := make([]float64, len(n.Flows))
	for i, f := range n.Flows {
		out[i] = float64(f.Delivered()-from[i]) * 8 / span.Seconds()
	}
	return out
}

// Queues are samples of a link's queue in bytes.
type Queues []float64

// Watch samples a link's queue at an interval from now on.
func (n *Net) Watch(l *Link, interval units.Time) *Queues {
	q := &Queues{}
	n.Every(interval, func() { *q = append(*q, float64(l.Queue)) })
	return q
}

// Mean returns the mean queue in bytes, of at least one sample.
func (q Queues) Mean() float64 { return stat.Mean(q, nil) }

// At returns a quantile, 0 to 1, of the queue in bytes, of at least one sample.
func (q Queues) At(p float64) float64 {
	return stat.Quantile(p, stat.Empirical, slices.Sorted(slices.Values(q)), nil)
}

// Jain returns Jain's fairness index of rates, 1 when all are equal (Jain, Chiu, Hawe,
// DEC-TR-301, 1984).
func Jain(rates []float64) float64 {
	if floats.Norm(rates, 2) == 0 {
		return 1
	}
	sum := floats.Sum(rates)
	return sum * sum / (float64(len(rates)) * floats.Dot(rates, rates))
}
