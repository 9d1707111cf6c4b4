package session

import (
	"sync/atomic"
	"time"
)

// pulse tells a dead switch from one that is slow, or busy with other things. Silence is counted in
// heartbeats that came in time, and not by the clock: a controller that stood still, or is short of
// processor time, has not heard either what was said meanwhile. beat has one caller, the other methods
// have any.
type pulse struct {
	heard  atomic.Bool // the switch has said something since the last beat
	asked  atomic.Bool // it owes an answer
	silent int         // beats in a row without a word
}

// patience is how many beats a switch that was asked may say nothing: one that compiles a program, or has
// other work, is slow, and to begin anew would make it slower still. That its machine is dead, or the way
// there, is found by TCP in lost beats.
const (
	patience = 10
	lost     = 3
)

// hear notes that something came from the switch.
func (p *pulse) hear() { p.heard.Store(true) }

// answer notes that the switch has answered.
func (p *pulse) answer() {
	p.asked.Store(false)
	p.hear()
}

// tardy is by how much a beat may be late and count, or by a tenth of what is between two.
const tardy = 100 * time.Millisecond

// beat is told how late it comes, and reports whether the switch is to be asked whether it lives, and
// whether it is dead.
func (p *pulse) beat(late, every time.Duration) (ask, dead bool) {
	switch {
	case p.heard.Swap(false):
		p.silent = 0
		return false, false
	case late < max(every/10, tardy):
		p.silent++
	}
	return p.silent <= patience && p.asked.CompareAndSwap(false, true), p.silent > patience
}
