package emulation

import (
	"cmp"
	"math"
	"slices"

	"github.com/headgate/headgate/units"
)

// Series are samples at a fixed interval, oldest first.
type Series []Point

// Window is a part of a play's time.
type Window struct{ From, To units.Time }

// between returns the samples in [w.From, w.To].
func (s Series) between(w Window) Series {
	at := func(p Point, t units.Time) int { return cmp.Compare(p.At, t) }
	lo, _ := slices.BinarySearchFunc(s, w.From, at)
	hi, exact := slices.BinarySearchFunc(s, w.To, at)
	if exact {
		hi++
	}
	if lo >= hi {
		return nil
	}
	return s[lo:hi]
}

// rate returns the mean payload rate of flow i over the whole series in bits per second.
func (s Series) rate(i int) float64 {
	if len(s) < 2 {
		return 0
	}
	first, last := s[0], s[len(s)-1]
	if last.At <= first.At {
		return 0
	}
	return float64(last.Flows[i].Delivered-first.Flows[i].Delivered) * 8 / (last.At - first.At).Seconds()
}

// rates returns flow i's rate around each sample.
func (s Series) rates(i int, over units.Time) []float64 {
	out := make([]float64, len(s))
	for k, p := range s {
		out[k] = math.Round(s.between(Window{p.At - over/2, p.At + over/2}).rate(i))
	}
	return out
}

// lowest returns the lowest rate of flow i over any part of the given length.
func (s Series) lowest(i int, over units.Time) float64 {
	low := math.Inf(1)
	for a, b := 0, 0; b < len(s); b++ {
		for s[b].At-s[a].At >= over {
			low = min(low, s[a:b+1].rate(i))
			a++
		}
	}
	if math.IsInf(low, 1) {
		return s.rate(i)
	}
	return low
}

// mean returns the mean of a quantity.
func (s Series) mean(of func(Point) float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sum := 0.0
	for _, p := range s {
		sum += of(p)
	}
	return sum / float64(len(s))
}

// queueMean returns the mean of the recorded queue in bytes.
func (s Series) queueMean() float64 {
	return s.mean(func(p Point) float64 { return float64(p.Queue) })
}

// queueQuantile returns the quantile q, from 0 to 1, of the recorded queue in bytes.
func (s Series) queueQuantile(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	v := make([]float64, len(s))
	for i, p := range s {
		v[i] = float64(p.Queue)
	}
	slices.Sort(v)
	return v[int(math.Round(q*float64(len(v)-1)))]
}

// settle returns, in microseconds, how long after the first sample a value comes within band (a
// fraction) of a level and stays there. The value is averaged over windows of the given length. It
// returns nil if the value never settles, or settles less than one window before the end.
func (s Series) settle(value func(Series) float64, level, band float64, window units.Time) (at *float64) {
	if level <= 0 {
		return nil
	}
	for a, b := 0, 0; a < len(s); a++ {
		for b < len(s) && s[b].At < s[a].At+window {
			b++
		}
		if b == len(s) {
			break
		}
		switch within := math.Abs(value(s[a:b+1])/level-1) <= band; {
		case !within:
			at = nil
		case at == nil:
			us := (s[a].At - s[0].At).Micros()
			at = &us
		}
	}
	return at
}
