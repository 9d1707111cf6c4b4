package sim

import (
	"sync/atomic"
)

// team is some goroutines that do a part of a job each, again and again. Who waits for the others
// looks for some microseconds, as the next job mostly comes soon, and then sleeps, as the
// processor may be wanted elsewhere.
type team struct {
	do    func(i int)
	round atomic.Uint32
	left  atomic.Int32 // of the round
	boss  sleeper
	hands []*sleeper // of parts 1 on
}

// patience is how often who waits looks before it sleeps: some 5 µs.
const patience = 2000

// sleeper is who may sleep until woken.
type sleeper struct {
	asleep atomic.Bool
	wake   chan struct{}
}

func newSleeper() sleeper { return sleeper{wake: make(chan struct{}, 1)} }

// until returns once a condition holds, which others make true before they call rouse. A call of
// rouse may be late, and be for a condition that this one has seen long ago.
func (s *sleeper) until(holds func() bool) {
	for range patience {
		if holds() {
			return
		}
	}
	for !holds() {
		s.asleep.Store(true)
		if holds() && s.asleep.CompareAndSwap(true, false) {
			return
		}
		<-s.wake // who sends has taken asleep back
	}
}

func (s *sleeper) rouse() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.wake <- struct{}{}
	}
}

// newTeam returns a team of n, of which the caller of run is one.
func newTeam(n int) *team {
	t := &team{boss: newSleeper()}
	for i := 1; i < n; i++ {
		h := newSleeper()
		t.hands = append(t.hands, &h)
		go t.serve(i, &h)
	}
	return t
}

// run does a job's parts, 0 to n − 1, side by side and returns when all are done.
func (t *team) run(do func(i int)) {
	t.do = do
	t.start()
	do(0)
	t.boss.until(func() bool { return t.left.Load() == 0 })
}

func (t *team) start() {
	t.left.Store(int32(len(t.hands)))
	t.round.Add(1)
	for _, h := range t.hands {
		h.rouse()
	}
}

// close ends the goroutines.
func (t *team) close() {
	t.do = nil
	t.start()
}

func (t *team) serve(i int, me *sleeper) {
	for round := uint32(1); ; round++ {
		me.until(func() bool { return t.round.Load() == round })
		if t.do == nil {
			return
		}
		t.do(i)
		if t.left.Add(-1) == 0 {
			t.boss.rouse()
		}
	}
}
