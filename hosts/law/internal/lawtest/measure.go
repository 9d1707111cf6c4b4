package lawtest

import (
	"sort"

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
	n.Run(n.Now + span)
	out := make([]float64, len(n.Flows))
	for i, f := range n.Flows {
		out[i] = float64(f.Delivered()-from[i]) * 8 / span.Seconds()
	}
	return out
}

// Queues collects samples of a link's queue.
type Queues []units.Bytes

// Watch samples a link's queue at an interval from now on.
func (n *Net) Watch(l *Link, interval units.Time) *Queues {
	q := &Queues{}
	n.Every(interval, func() { *q = append(*q, l.Queue) })
	return q
}

// Mean returns the mean queue in bytes.
func (q Queues) Mean() float64 {
	sum := 0.0
	for _, v := range q {
		sum += float64(v)
	}
	return sum / float64(max(len(q), 1))
}

// At returns a quantile, 0 to 1, of the queue in bytes.
func (q Queues) At(p float64) float64 {
	if len(q) == 0 {
		return 0
	}
	s := append(Queues(nil), q...)
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return float64(s[min(int(p*float64(len(s))), len(s)-1)])
}

// Sum adds rates.
func Sum(rates []float64) (sum float64) {
	for _, r := range rates {
		sum += r
	}
	return sum
}

// Jain returns Jain's fairness index of rates, 1 when all are equal (Jain, Chiu, Hawe,
// DEC-TR-301, 1984).
func Jain(rates []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, r := range rates {
		sum += r
		squares += r * r
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(rates)) * squares)
}
