package param

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// Range is what a parameter may be, in its type's own unit.
type Range struct {
	low, high         float64
	openLow, openHigh bool
}

// Number is what bounds are given as.
type Number interface {
	~int | ~int64 | ~float64
}

// Any allows everything.
var Any = Range{low: math.Inf(-1), high: math.Inf(1)}

// Above allows what is more than low.
func Above[T Number](low T) Range { return Range{float64(low), math.Inf(1), true, false} }

// AtLeast allows low and more.
func AtLeast[T Number](low T) Range { return Range{float64(low), math.Inf(1), false, false} }

// From allows low to high.
func From[T Number](low, high T) Range { return Range{float64(low), float64(high), false, false} }

// AboveTo allows what is more than low and at most high.
func AboveTo[T Number](low, high T) Range { return Range{float64(low), float64(high), true, false} }

// Between allows what is more than low and less than high.
func Between[T Number](low, high T) Range { return Range{float64(low), float64(high), true, true} }

// has reports whether v is allowed; NaN never is.
func (r Range) has(v float64) bool {
	return (v > r.low || v == r.low && !r.openLow) && (v < r.high || v == r.high && !r.openHigh)
}

// want says what a range allows, in T's units.
func want[T Value](r Range) string {
	low, high := bound[T](r.low), bound[T](r.high)
	switch {
	case low == "" && high == "":
		return ""
	case low == "":
		return "at most " + high
	case high == "" && r.openLow:
		return "more than " + low
	case high == "":
		return low + " or more"
	case r.openLow && r.openHigh:
		return "more than " + low + " and less than " + high
	case r.openLow:
		return "more than " + low + " and at most " + high
	}
	return low + " to " + high
}

// bound prints a bound, "" for none.
func bound[T Value](v float64) string {
	if math.Abs(v) >= 1<<62 {
		return ""
	}
	return fmt.Sprint(T(v))
}

// PacketTime returns the least base round trip for a window of a packet: how long the packet
// takes at a rate. It is 1 ps where the rate is out of range, which another check finds.
func PacketTime(rate units.Rate, mss units.Bytes) units.Time {
	if rate <= 0 {
		return 1
	}
	return max(rate.TxTime(mss), 1)
}
