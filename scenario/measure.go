package scenario

import (
	"math"
	"time"

	"github.com/headgate/headgate/units"
)

// Point is one sample of a flow.
type Point struct {
	At    units.Time
	Acked units.Bytes // payload acknowledged since the flow began
	MaxQD units.Time  // last echoed maxQD
	RTT   units.Time  // last round-trip time
}

// Series is a flow's samples, oldest first.
type Series []Point

// between returns the samples in [from, to].
func (s Series) between(from, to units.Time) Series {
	lo, hi := len(s), 0
	for i, p := range s {
		if p.At >= from && i < lo {
			lo = i
		}
		if p.At <= to {
			hi = i + 1
		}
	}
	if lo >= hi {
		return nil
	}
	return s[lo:hi]
}

// rate returns the mean payload rate over the whole series, in bits per second.
func (s Series) rate() float64 {
	if len(s) < 2 {
		return 0
	}
	first, last := s[0], s[len(s)-1]
	if last.At <= first.At {
		return 0
	}
	return float64(last.Acked-first.Acked) * 8 / (last.At - first.At).Seconds()
}

// meanQD returns the mean of the echoed queueing delays.
func (s Series) meanQD() units.Time {
	return s.mean(func(p Point) units.Time { return p.MaxQD })
}

// meanRTT returns the mean round-trip time.
func (s Series) meanRTT() units.Time {
	return s.mean(func(p Point) units.Time { return p.RTT })
}

func (s Series) mean(of func(Point) units.Time) units.Time {
	if len(s) == 0 {
		return 0
	}
	var sum units.Time
	for _, p := range s {
		sum += of(p)
	}
	return sum / units.Time(len(s))
}

// settle returns how long after the first sample the rate, taken over windows of the given
// length, comes within tolerance (a fraction) of share and stays there until the end. It
// reports false when it never does, or only so late that less than one window remains.
func (s Series) settle(share, tolerance float64, window units.Time) (units.Time, bool) {
	if len(s) == 0 || share <= 0 {
		return 0, false
	}
	start, settled, any := s[0].At, units.Time(0), false
	for i, j := 0, 0; i < len(s); i++ {
		for j < len(s) && s[j].At < s[i].At+window {
			j++
		}
		if j == len(s) {
			break
		}
		within := math.Abs(s[i:j+1].rate()/share-1) <= tolerance
		switch {
		case within && !any:
			settled, any = s[i].At-start, true
		case !within:
			any = false
		}
	}
	return settled, any
}

func millis(t units.Time) float64 {
	return math.Round(float64(t.Duration())/float64(time.Microsecond)) / 1000
}
