package session

import "sync/atomic"

// pulse tells a dead switch from one that is slow, or busy with other things. Silence is counted in
// heartbeats that came, and not by the clock: a controller that stood still, or had no processor, has not
// heard either what was said meanwhile. beat has one caller, the other methods have any.
type pulse struct {
	heard  atomic.Bool // the switch has said something since the last beat
	asked  atomic.Bool // it owes an answer
	silent int         // beats in a row without a word
}

// patience is how many beats a switch that was asked may say nothing.
const patience = 3

// hear notes that something came from the switch.
func (p *pulse) hear() { p.heard.Store(true) }

// answer notes that the switch has answered.
func (p *pulse) answer() {
	p.asked.Store(false)
	p.hear()
}

// beat reports whether the switch is to be asked whether it lives, and whether it is dead.
func (p *pulse) beat() (ask, dead bool) {
	if p.heard.Swap(false) {
		p.silent = 0
		return false, false
	}
	p.silent++
	return p.silent <= patience && p.asked.CompareAndSwap(false, true), p.silent > patience
}
