package maxqd

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

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
