package sim

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestWorkerPoolRounds: nobody begins a round before all have ended the one before, also when a call to
// wake comes late.
func TestWorkerPoolRounds(t *testing.T) {
	const n, rounds = 4, 300
	pool := newWorkerPool(n)
	defer pool.close()
	var done [n]atomic.Int64
	for round := range int64(rounds) {
		pool.run(func(i int) {
			for j := range done {
				if d := done[j].Load(); d < round {
					t.Errorf("partition %d is in round %d while partition %d has done %d", i, round, j, d)
				}
			}
			done[i].Add(1)
		})
	}
}

// TestBarrierLateRelease: a goroutine whose condition does not hold waits on after a release.
func TestBarrierLateRelease(t *testing.T) {
	s := newBarrier()
	var ready atomic.Bool
	woke := make(chan struct{})
	go func() {
		s.wait(ready.Load)
		close(woke)
	}()
	for !s.asleep.Load() {
		runtime.Gosched()
	}
	s.release()
	for !s.asleep.Load() {
		select {
		case <-woke:
			t.Fatal("woke before its condition held")
		default:
			runtime.Gosched()
		}
	}
	ready.Store(true)
	s.release()
	s.release()
	<-woke
}
