package clock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/units"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOrderIsTimeThenSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			at  units.Time
			seq int
		}
		times := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 200).Draw(t, "times")
		cancel := rapid.SliceOfN(rapid.IntRange(0, 200), 0, 50).Draw(t, "cancelled")
		move := rapid.SliceOfN(rapid.IntRange(0, 200), 0, 20).Draw(t, "moved")

		l := clock.NewLoop()
		var want, got []event
		timers := make([]*clock.Timer, len(times))
		gone := make([]bool, len(times))
		when := make([]event, len(times))
		for i, at := range times {
			when[i] = event{units.Time(at), i}
			timers[i] = l.At(units.Time(at), func() { got = append(got, event{l.Now(), when[i].seq}) })
		}
		for _, i := range cancel {
			if i < len(timers) {
				if timers[i].Stop() == gone[i] {
					t.Fatalf("Stop of timer %d does not match: cancelled before: %v", i, gone[i])
				}
				gone[i] = true
			}
		}
		for n, i := range move {
			if i < len(timers) {
				// A moved timer runs after the timers already scheduled for the same time.
				when[i] = event{when[i].at + 3, len(times) + n}
				gone[i] = false
				timers[i].Reset(when[i].at)
			}
		}
		for i := range when {
			if !gone[i] {
				want = append(want, when[i])
			}
		}
		slices.SortFunc(want, func(a, b event) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.seq - b.seq
		})
		if l.Len() != len(want) {
			t.Fatalf("%d events pending, want %d", l.Len(), len(want))
		}
		l.RunUntil(10)
		l.RunUntil(100)
		if !slices.Equal(got, want) {
			t.Fatalf("ran %v\nwant %v", got, want)
		}
		if l.Now() != 100 || l.Time() != 100 {
			t.Fatalf("clock at %v and %v, want 100", l.Now(), l.Time())
		}
	})
}

func TestEventsScheduleEvents(t *testing.T) {
	l := clock.NewLoop()
	var at []units.Time
	var tick func()
	tick = func() {
		at = append(at, l.Now())
		if len(at) < 5 {
			l.After(10, tick)
		}
	}
	l.Schedule(7, tick)
	l.At(20, func() {
		l.At(3, func() { // the past means now
			if l.Now() != 20 {
				t.Errorf("event scheduled for the past ran at %v, want 20", l.Now())
			}
		})
	})
	l.RunUntil(1000)
	if want := []units.Time{7, 17, 27, 37, 47}; !slices.Equal(at, want) {
		t.Errorf("ticks at %v, want %v", at, want)
	}
	if tm := l.After(units.MaxTime, func() {}); !tm.Stop() {
		t.Error("a timer for the end of time was not pending")
	}
}

func TestTimer(t *testing.T) {
	l := clock.NewLoop()
	ran := 0
	tm := l.NewTimer(func() { ran++ })
	if _, ok := tm.Pending(); ok || tm.Stop() {
		t.Error("a new timer is pending")
	}
	tm.Reset(5)
	tm.Reset(9)
	if at, ok := tm.Pending(); !ok || at != 9 {
		t.Errorf("due at %v, %v, want 9", at, ok)
	}
	l.RunUntil(8)
	if ran != 0 {
		t.Error("ran at the time it was moved from")
	}
	l.RunUntil(9)
	if ran != 1 || tm.Stop() {
		t.Errorf("ran %d times, still pending: %v", ran, tm.Stop())
	}
}

func TestPostedFunctionsRunInOrder(t *testing.T) {
	l := clock.NewLoop()
	var got []int
	for i := range 3 {
		l.Post(func() { got = append(got, i) })
	}
	l.Schedule(0, func() { got = append(got, 9) })
	l.RunUntil(1)
	if want := []int{0, 1, 2, 9}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

func TestRunRealPacesAndKeepsEventTimes(t *testing.T) {
	l := clock.NewLoop()
	l.RunUntil(units.Second) // a real-time run continues from the clock's present value
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	var at []units.Time
	for i := range 5 {
		due := units.Second + units.Time(i)*5*units.Millisecond
		l.Schedule(due, func() {
			at = append(at, l.Now()-units.Second)
			if early := (l.Now() - units.Second).Duration() - time.Since(start); early > 0 {
				t.Errorf("event of %v ran %v before the wall clock", l.Now(), early)
			}
			if len(at) == 2 {
				time.Sleep(12 * time.Millisecond) // delays the next ones
			}
			if len(at) == 5 {
				cancel()
			}
		})
	}
	if err := l.RunReal(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("RunReal = %v", err)
	}
	ms := units.Millisecond
	if want := []units.Time{0, 5 * ms, 10 * ms, 15 * ms, 20 * ms}; !slices.Equal(at, want) {
		t.Errorf("events saw %v, want %v", at, want)
	}
	if _, worst := l.Lag(); worst < 5*ms {
		t.Errorf("worst lag %v, want at least 5ms after an event that took 12ms", worst)
	}
}

func TestRunRealTakesPosts(t *testing.T) {
	l := clock.NewLoop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := make(chan error)
	go func() { end <- l.RunReal(ctx) }()

	var wg sync.WaitGroup
	sum := 0 // only the loop's goroutine uses it
	for range 4 {
		wg.Go(func() {
			for range 250 {
				l.Post(func() { sum++ })
			}
			if err := l.Do(ctx, func() {}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := l.Do(ctx, func() {
		if sum != 1000 {
			t.Errorf("%d posts ran, want 1000", sum)
		}
		if err := l.RunReal(ctx); !errors.Is(err, clock.ErrRunning) {
			t.Errorf("a second RunReal = %v, want ErrRunning", err)
		}
	}); err != nil {
		t.Error(err)
	}
	cancel()
	<-end
	if err := l.Do(ctx, func() { t.Error("ran after giving up") }); !errors.Is(err, clock.ErrStopped) {
		t.Errorf("Do on a stopped loop = %v, want ErrStopped", err)
	}
	l.RunUntil(l.Time())
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	l := clock.NewLoop()
	fn := func() {}
	tm := l.NewTimer(fn)
	at := units.Time(0)
	step := func() {
		at += 10
		tm.Reset(at)
		l.Schedule(at, fn)
		l.RunUntil(at)
	}
	step()
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations a round, want none", n)
	}
}

// BenchmarkLoop runs events while n are pending. Each event schedules its successor.
func BenchmarkLoop(b *testing.B) {
	for _, n := range []int{16, 1024, 65536} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			l := clock.NewLoop()
			rnd, ran := uint64(1), 0
			var fn func()
			fn = func() {
				ran++
				rnd = rnd*6364136223846793005 + 1442695040888963407
				l.Schedule(l.Now()+units.Time(rnd>>44), fn)
			}
			for range n {
				fn()
			}
			ran = 0
			for b.Loop() {
				if ran--; ran < 0 { // one step of the clock too far
					ran = 0
					for ran == 0 {
						l.RunUntil(l.Now() + 1<<20/units.Time(n))
					}
				}
			}
		})
	}
}
