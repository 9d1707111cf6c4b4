// Package clock runs functions in the order of a virtual time, on one goroutine: as fast
// as possible, or no faster than the wall clock.
//
// The switches, links and hosts of a fabric in one process share a Loop. None of them needs a lock, and
// a run depends only on the order of (time, sequence).
//
// Start at Loop.RunUntil.
package clock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/units"
)

// ErrRunning is returned when a Loop that already runs is asked to run.
var ErrRunning = errors.New("clock: the loop is already running")

// ErrStopped is returned by Do when the loop did not run the function in time.
var ErrStopped = errors.New("clock: the loop did not run the function")

// Loop is an event loop over a virtual clock: it runs functions in (time, sequence) order
// on one goroutine, the one that called RunReal or RunUntil. That goroutine owns the loop
// and all that its functions touch. Other goroutines use Post, Do, Time and Lag only.
type Loop struct {
	now    units.Time
	seq    uint64
	events heap.Heap[*Timer] // ordered by time, then by the order in which they were scheduled
	free   []*Timer          // timers that Schedule uses again

	running   atomic.Bool
	published atomic.Int64 // copy of now for other goroutines
	lag       atomic.Int64
	maxLag    atomic.Int64

	mu      sync.Mutex
	posted  []func() // owned by mu
	spare   []func() // the loop's; swapped with posted so that neither is allocated anew
	pending atomic.Bool
	wake    chan struct{}
}

// NewLoop returns a loop at time 0.
func NewLoop() *Loop {
	return &Loop{wake: make(chan struct{}, 1), events: heap.New((*Timer).before, (*Timer).place)}
}

// Now returns the virtual time: that of the event being run. Loop goroutine only.
func (l *Loop) Now() units.Time { return l.now }

// Time returns the virtual time, from any goroutine. It is behind Now by at most the event being run.
func (l *Loop) Time() units.Time { return units.Time(l.published.Load()) }

// Lag returns how late the last event ran against the wall clock, and the latest that any
// has run, in the current or last RunReal. From any goroutine.
func (l *Loop) Lag() (last, worst units.Time) {
	return units.Time(l.lag.Load()), units.Time(l.maxLag.Load())
}

// Len returns the number of pending events. Loop goroutine only.
func (l *Loop) Len() int { return l.events.Len() }

// At schedules fn for time t; a t in the past means now, after what is already scheduled
// for now. Loop goroutine only, or before the loop runs. The returned Timer cancels it.
func (l *Loop) At(t units.Time, fn func()) *Timer {
	tm := l.NewTimer(fn)
	tm.Reset(t)
	return tm
}

// After schedules fn for d from now; see At.
func (l *Loop) After(d units.Time, fn func()) *Timer { return l.At(l.later(d), fn) }

// Schedule is At for events that are never cancelled. It allocates nothing unless more events are pending than
// ever before.
func (l *Loop) Schedule(t units.Time, fn func()) {
	var tm *Timer
	if last := len(l.free) - 1; last >= 0 {
		tm, l.free = l.free[last], l.free[:last]
		tm.fn = fn
	} else {
		tm = l.NewTimer(fn)
		tm.reused = true
	}
	l.push(t, tm)
}

func (l *Loop) push(t units.Time, tm *Timer) {
	l.seq++
	tm.at, tm.seq = max(t, l.now), l.seq
	l.events.Push(tm)
}

// later returns now + d without overflow.
func (l *Loop) later(d units.Time) units.Time {
	if d > units.MaxTime-l.now {
		return units.MaxTime
	}
	return l.now + d
}

// Post runs fn on the loop soon, from any goroutine: at the wall clock's time in RunReal
// when the loop is not late, at the current virtual time otherwise. Functions posted by
// one goroutine run in their order. A loop that is not running keeps them until it is.
func (l *Loop) Post(fn func()) {
	l.mu.Lock()
	l.posted = append(l.posted, fn)
	l.pending.Store(true)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Do runs fn on the loop, from any other goroutine, and returns when it has run. When ctx
// ends first it returns ErrStopped and fn will not run.
func (l *Loop) Do(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	var claimed atomic.Bool // set by whichever comes first: the loop runs fn, or the caller gives up
	l.Post(func() {
		if claimed.CompareAndSwap(false, true) {
			fn()
			close(done)
		}
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		if claimed.CompareAndSwap(false, true) {
			return errors.Join(ErrStopped, ctx.Err())
		}
		<-done // fn has begun and is about to end
		return nil
	}
}

// runPosted runs the functions posted so far.
func (l *Loop) runPosted() {
	l.mu.Lock()
	work := l.posted
	l.posted = l.spare[:0]
	l.pending.Store(false)
	l.mu.Unlock()
	for i, fn := range work {
		work[i] = nil
		fn()
	}
	l.spare = work
}

// advance moves the virtual clock to t.
func (l *Loop) advance(t units.Time) {
	if t > l.now {
		l.now = t
		l.published.Store(int64(t))
	}
}

// due returns the time of the earliest event, MaxTime for none.
func (l *Loop) due() units.Time {
	if l.events.Len() == 0 {
		return units.MaxTime
	}
	return l.events.First().at
}

// next runs the earliest event.
func (l *Loop) next() {
	e := l.events.Remove(0)
	fn := e.fn
	if e.reused {
		e.fn = nil
		l.free = append(l.free, e)
	}
	l.advance(e.at)
	fn()
}

// RunUntil runs everything scheduled up to and including time t, as fast as possible, and
// leaves the clock at t. Posted functions run before the next event. It is deterministic
// as long as nothing is posted meanwhile.
func (l *Loop) RunUntil(t units.Time) {
	if !l.running.CompareAndSwap(false, true) {
		panic(ErrRunning)
	}
	defer l.running.Store(false)
	for {
		if l.pending.Load() {
			l.runPosted()
			continue
		}
		if l.due() > t {
			break
		}
		l.next()
	}
	l.advance(t)
}

// RunReal runs until ctx ends, paced by the wall clock: virtual time starts where it
// stands and events never run ahead of the wall clock. Events that are late run in order
// and see their own times, so a slow machine stretches a run instead of distorting it;
// Lag tells by how much. It returns ctx's error, or ErrRunning.
func (l *Loop) RunReal(ctx context.Context) error {
	if !l.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer l.running.Store(false)
	l.lag.Store(0)
	l.maxLag.Store(0)

	start, base := time.Now(), l.now
	wall := base
	sleep := time.NewTimer(time.Hour)
	defer sleep.Stop()
	done := ctx.Done()
	for ran := 0; ; ran++ {
		// Look at the context and the clock now and then even when events never stop coming.
		if ran&63 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			wall = base + units.FromDuration(time.Since(start))
		}
		idle := l.due() > wall
		if idle { // perhaps only by an old reading of the wall clock
			wall = base + units.FromDuration(time.Since(start))
			idle = l.due() > wall
		}
		if idle {
			// Nothing is late: the virtual clock may follow the wall clock.
			l.advance(wall)
		}
		if l.pending.Load() {
			l.runPosted()
			continue
		}
		if !idle {
			l.observeLag(wall - l.due())
			l.next()
			continue
		}
		// Round up: waking a nanosecond early would only spin once more.
		sleep.Reset(min(time.Hour, (l.due()-wall).Duration()+1))
		select {
		case <-sleep.C:
		case <-l.wake:
		case <-done:
			return ctx.Err()
		}
	}
}

func (l *Loop) observeLag(lag units.Time) {
	l.lag.Store(int64(lag))
	if int64(lag) > l.maxLag.Load() {
		l.maxLag.Store(int64(lag))
	}
}

// Timer is a function that is scheduled at most once at a time. Components keep one and
// Reset it, which allocates nothing. The loop's goroutine owns it.
type Timer struct {
	loop   *Loop
	fn     func()
	index  int // index in the loop's heap
	at     units.Time
	seq    uint64
	reused bool // Schedule uses the timer again after it has run
}

func (t *Timer) before(o *Timer) bool { return t.at < o.at || t.at == o.at && t.seq < o.seq }

func (t *Timer) place(at int) { t.index = at }

// NewTimer returns a timer for fn that is not pending.
func (l *Loop) NewTimer(fn func()) *Timer {
	return &Timer{loop: l, fn: fn, index: heap.Outside}
}

// Reset schedules the timer for t, in place of the time it was scheduled for; a t in the
// past means now.
func (t *Timer) Reset(at units.Time) {
	t.Stop()
	t.loop.push(at, t)
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
