package estimate

import (
	"math"

	"github.com/headgate/headgate/units"
)

// The chip's arithmetic on these tables, for tests: what gradient.p4 does with their entries.

// Limit returns where |g| saturates, in bytes per 2^10 ns.
func (t *Tables) Limit() int64 { return t.limit }

// Gradient returns |g| for a growth in cells in a time in ticks, as the three tables give it:
// within the tables' error of cells·bytes·2^10/ticks, and 0 when that is below 1. A time of
// 0 counts as 1.
func (t *Tables) Gradient(growth, elapsed uint32) uint32 {
	up := fraction - t.logs.Precision().Frac
	var bytes, ticks uint64
	if growth != 0 {
		bytes = uint64(t.logs.Log2(uint64(growth)))<<up + t.offset
	}
	if elapsed != 0 {
		ticks = uint64(t.logs.Log2(uint64(elapsed))) << up
	}
	if bytes <= ticks {
		return 0
	}
	return uint32(min(t.logs.Exp2(int32((bytes-ticks)>>up)), uint64(t.limit)))
}

// Headroom returns φ̂ of the i-th port for ĝ in bytes per 2^Unit ticks: never below ĝ·D, and
// above by at most one step, two where ĝ is the end of one.
func (t *Tables) Headroom(i int, gradient int32) units.Bytes {
	if gradient <= 0 {
		return 0
	}
	return t.links[t.profile[i]].Lookup(int64(gradient) + 1)
}

// Error bounds |ĝ − Algorithm 2's ĝ| on every other packet, in bytes per 2^Unit ticks, when
// no |g| so far has exceeded largest (at most Limit, in bytes per 2^10 ns).
//
// One g is off by e = r·largest + 1, with r the tables' error (a cell's logarithm makes the
// exponential's buckets wider by a last place). S decays by a quarter that is
// off by 1/16 of itself and by less than 1, in each of its two parts, so it stays below
// 64/15 of the largest g and is off by 4·(e + S/64 + 2). The distance |S − 4·g| is off by
// that and 4·e; V is its sum, so it is off by four times that and by the same of its own
// decay.
func (t *Tables) Error(largest int64) int64 {
	const sum = 4 / (1 - quarterError)
	g := float64(largest)
	e := (t.logs.QuotientError()+math.Exp2(-float64(t.logs.Precision().Frac)))*g + 1
	s := sum * (g + e + 2)
	net := 4 * (e + s*quarterError/4 + 2)
	distance := net + 4*e
	v := sum * (8*g + distance + 1)
	return int64(math.Ceil(net + 4*(distance+v*quarterError/4+1)))
}
