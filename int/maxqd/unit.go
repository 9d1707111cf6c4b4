package maxqd

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// MaxShift is the largest shift that the pipeline's parameter can hold.
const MaxShift = 31

// Unit is the time that one step of a maxQD field stands for. Every switch and host of a
// fabric has the same. The zero value is not a unit.
type Unit struct{ t units.Time }

// NewUnit returns the unit of a fabric; t is positive.
func NewUnit(t units.Time) (Unit, error) {
	if t <= 0 || t > units.Second {
		return Unit{}, fmt.Errorf("maxQD unit %v: want more than 0 and at most 1s", t)
	}
	return Unit{t}, nil
}

// UnitOf returns the unit of a pipeline whose clock ticks every tick (1 µs on BMv2, 1 ns
// on Tofino) and whose parameter shifts delays right by shift, 0 to MaxShift.
func UnitOf(tick units.Time, shift uint) (Unit, error) {
	if shift > MaxShift {
		return Unit{}, fmt.Errorf("maxQD shift %d: want 0 to %d", shift, MaxShift)
	}
	if tick <= 0 || tick > units.Second>>shift {
		return Unit{}, fmt.Errorf("clock tick %v shifted by %d: want a unit of more than 0 and at most 1s", tick, shift)
	}
	return Unit{tick << shift}, nil
}

// Time returns the unit as a time.
func (u Unit) Time() units.Time { return u.t }

// Encode converts a delay to a maxQD value. It rounds down, as the pipeline's shift does,
// and saturates at 65535; a negative delay is none.
func (u Unit) Encode(t units.Time) uint16 {
	if t <= 0 {
		return 0
	}
	return uint16(min(t/u.t, math.MaxUint16))
}

// Decode converts a maxQD value to the delay it stands for.
func (u Unit) Decode(v uint16) units.Time { return units.Time(v) * u.t }

// FromTicks is the pipeline's own conversion, for differential tests: a delay in clock
// ticks, shifted and saturated.
func FromTicks(ticks uint64, shift uint) uint16 {
	return uint16(min(ticks>>shift, math.MaxUint16))
}
