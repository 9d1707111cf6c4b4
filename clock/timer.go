package clock

import (
	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/units"
)

// event is one pending call. Events are ordered by time, and by the order in which they
// were scheduled among equal times.
type event struct {
	at    units.Time
	seq   uint64
	fn    func()
	timer *Timer // nil when nobody can cancel the event
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// place tells the event's timer where it is.
func (e event) place(at int) {
	if e.timer != nil {
		e.timer.index = at
	}
}

// Timer is a function that is scheduled at most once at a time. Components keep one and
// Reset it, which allocates nothing. The loop's goroutine owns it.
type Timer struct {
	loop  *Loop
	fn    func()
	index int // in the loop's heap
	at    units.Time
}

// NewTimer returns a timer for fn that is not pending.
func (l *Loop) NewTimer(fn func()) *Timer {
	return &Timer{loop: l, fn: fn, index: heap.Outside}
}

// Reset schedules the timer for t, in place of the time it was scheduled for; a t in the
// past means now.
func (t *Timer) Reset(at units.Time) {
	t.Stop()
	t.at = max(at, t.loop.now)
	t.loop.push(t.at, t.fn, t)
}

// Stop cancels the timer and reports whether it was pending.
func (t *Timer) Stop() bool {
	if t.index == heap.Outside {
		return false
	}
	t.loop.events.Remove(t.index)
	return true
}

// Pending returns when the timer is due; false when it is idle.
func (t *Timer) Pending() (units.Time, bool) {
	if t.index == heap.Outside {
		return 0, false
	}
	return t.at, true
}
