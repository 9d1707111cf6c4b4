package clock

import "github.com/headgate/headgate/units"

// idle is the index of a timer that is not pending.
const idle = -1

// Timer is a function that is scheduled at most once at a time. Components keep one and
// Reset it, which allocates nothing. The loop's goroutine owns it.
type Timer struct {
	loop  *Loop
	fn    func()
	index int // in the loop's heap; idle when not pending
}

// NewTimer returns an idle timer for fn.
func (l *Loop) NewTimer(fn func()) *Timer {
	return &Timer{loop: l, fn: fn, index: idle}
}

// Reset schedules the timer for t, in place of the time it was scheduled for; a t in the
// past means now.
func (t *Timer) Reset(at units.Time) {
	t.Stop()
	t.loop.push(at, t.fn, t)
}

// Stop cancels the timer and reports whether it was pending.
func (t *Timer) Stop() bool {
	if t.index == idle {
		return false
	}
	t.loop.events.remove(t.index)
	return true
}

// Pending returns when the timer is due; false when it is idle.
func (t *Timer) Pending() (units.Time, bool) {
	if t.index == idle {
		return 0, false
	}
	return t.loop.events[t.index].at, true
}
