package sim

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Static is the simplest buffer with PFC, for tests that set thresholds themselves: every ingress queue has its
// own threshold and headroom, and nothing is shared. It owns its counters.
type Static struct {
	xoff, xon, limit units.Bytes
	used             [][NumClasses]units.Bytes // per port
	paused           []uint8
	lossless         uint8
	out              [1]Signal
}

// NewStatic returns a buffer for a switch whose lossless ingress queues send PAUSE from xoff bytes on, RESUME
// once they have fallen to xon, and drop beyond limit.
func NewStatic(ports int, lossless uint8, xoff, xon, limit units.Bytes) (*Static, error) {
	if xoff <= 0 || xon < 0 || xon >= xoff || limit < xoff {
		return nil, fmt.Errorf("static thresholds: xon %v, xoff %v, limit %v: want 0 ≤ xon < xoff ≤ limit", xon, xoff, limit)
	}
	return &Static{
		xoff: xoff, xon: xon, limit: limit, lossless: lossless,
		used: make([][NumClasses]units.Bytes, ports), paused: make([]uint8, ports),
	}, nil
}

// Arrive implements Buffer.
func (b *Static) Arrive(_ units.Time, port int, class uint8, n units.Bytes) (bool, []Signal) {
	u := b.used[port][class] + n
	if u > b.limit {
		return false, nil
	}
	b.used[port][class] = u
	if bit := uint8(1) << class; u >= b.xoff && b.paused[port]&bit == 0 && b.lossless&bit != 0 {
		b.paused[port] |= bit
		b.out[0] = Signal{Port: port, Classes: bit, Pause: true}
		return true, b.out[:]
	}
	return true, nil
}

// Depart implements Buffer.
func (b *Static) Depart(_ units.Time, port int, class uint8, n units.Bytes) []Signal {
	u := b.used[port][class] - n
	b.used[port][class] = u
	if bit := uint8(1) << class; u <= b.xon && b.paused[port]&bit != 0 {
		b.paused[port] &^= bit
		b.out[0] = Signal{Port: port, Classes: bit}
		return b.out[:]
	}
	return nil
}
