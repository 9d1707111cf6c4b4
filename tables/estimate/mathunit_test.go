package estimate

import "math/bits"

// MathUnit is the math unit of a Tofino's stateful ALU with exponent shift 0 and no
// inversion: it looks up the four leading bits of its input and shifts what it finds. That
// is how the public compiler describes and fills it (p4c, backends/tofino, MathUnit.execute
// of stateful_alu.cpp: Data[i] = f(i/8)·2^−Scale for i from 8 to 15). What a shift to the
// right loses is lost.
type MathUnit struct {
	Scale int       // −32 to 31
	Data  [16]uint8 // by leading bits; below 8 only for 0
}

// quarter is the unit that gradient.p4 configures: x/4 for the middle of each bucket.
var quarter = MathUnit{Scale: -9, Data: [16]uint8{8: 136, 152, 168, 184, 200, 216, 232, 248}}

// quarterError bounds |Execute(x)/(x/4) − 1| of quarter, but for less than 1 that the shift
// loses: it is half of the widest bucket, which is an eighth of its lower end.
const quarterError = 1. / 16

// Execute returns the unit's output.
func (m *MathUnit) Execute(x uint32) uint32 {
	if x == 0 {
		return uint32(m.Data[0])
	}
	exponent := bits.Len32(x) - 1
	v := uint64(m.Data[uint64(x)<<3>>exponent])
	if shift := exponent + m.Scale; shift >= 0 {
		return uint32(v << shift)
	} else {
		return uint32(v >> -shift)
	}
}
