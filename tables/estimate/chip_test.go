package estimate

import "github.com/headgate/headgate/tests/tofino"

// quarter is the unit that gradient.p4 configures: x/4 for the middle of each bucket.
var quarter = tofino.MathUnit{Scale: -9, Data: [16]uint8{8: 136, 152, 168, 184, 200, 216, 232, 248}}

// quarterError bounds |Execute(x)/(x/4) − 1| of quarter, but for less than 1 that the shift
// loses: it is half of the widest bucket, which is an eighth of its lower end.
const quarterError = 1. / 16

// Turns of a queue's packets.
const (
	turnMeasure = 0
	turnDecay   = 1
)

// Estimator is what the chip's registers hold of one queue, and what a packet does to them,
// bit by bit. The zero Estimator is a chip that was just started. Its owner is whoever plays
// the queue.
type Estimator struct {
	turn         uint8
	length, at   uint32 // cells, ns
	rises, falls uint32 // S in two parts
	average      int32
	deviation    uint32 // V
	gradient     int32
}

// Departed takes note that a packet leaves at a time in ns, modulo 2^32, with a depth of so
// many cells left behind.
func (e *Estimator) Departed(t *Tables, now, depth uint32) {
	turn := e.turn
	e.turn ^= 1
	if turn == turnDecay {
		net := int32(e.rises - e.falls)
		e.rises -= quarter.Execute(e.rises)
		e.falls -= quarter.Execute(e.falls)
		e.average = net
		e.gradient = int32(e.deviation + uint32(net))
		e.deviation -= quarter.Execute(e.deviation)
		return
	}
	falls := depth < e.length
	growth := depth - e.length
	if falls {
		growth = -growth
	}
	g := t.Gradient(growth, now-e.at)
	e.length, e.at = depth, now
	quad := int32(g << 2)
	if falls {
		e.falls += g
		quad = -quad
	} else {
		e.rises += g
	}
	distance := e.average - quad
	if distance < 0 {
		distance = -distance
	}
	e.deviation += uint32(distance)
}

// Average returns g_avg and Gradient ĝ, as a poll reports them: in bytes per 2^Unit ticks, as
// of the last pair of packets.
func (e *Estimator) Average() int32 { return e.average }

// Gradient returns ĝ; see Average.
func (e *Estimator) Gradient() int32 { return e.gradient }
