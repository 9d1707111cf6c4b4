package session

import (
	"sync/atomic"
	"time"
)

// keepalive tells a dead switch from one that is slow, or busy with other things. Silence is counted in
// heartbeats that came in time, and not by the clock: a controller that stood still, or is short of
// processor time, has not heard either what was said meanwhile. tick has one caller, the other methods
// have any.
type keepalive struct {
	alive  atomic.Bool // the switch has said something since the last heartbeat
	asked  atomic.Bool // it owes an answer
	missed int         // heartbeats in a row without a word
}

const (
	// maxMissed is how many heartbeats a switch that was asked may say nothing: one that compiles a
	// program, or has other work, is slow, and to begin anew would make it slower still.
	maxMissed = 10
	// maxUnacknowledged is how many heartbeats the switch's machine may acknowledge nothing: TCP finds
	// out that it is dead, or the way there.
	maxUnacknowledged = 3
	// tolerance is how late a heartbeat may be and still count; a tenth of the interval if that is more.
	tolerance = 100 * time.Millisecond
)

// heard notes that something came from the switch.
func (k *keepalive) heard() { k.alive.Store(true) }

// answered notes that the switch has answered.
func (k *keepalive) answered() {
	k.asked.Store(false)
	k.heard()
}

// tick takes a heartbeat's lateness. It reports whether to ask the switch for a sign of life, and
// whether the switch is dead.
func (k *keepalive) tick(late, every time.Duration) (ask, dead bool) {
	switch {
	case k.alive.Swap(false):
		k.missed = 0
		return false, false
	case late < max(every/10, tolerance):
		k.missed++
	}
	return k.missed <= maxMissed && k.asked.CompareAndSwap(false, true), k.missed > maxMissed
}
