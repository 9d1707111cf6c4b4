package sim

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestTeamMeets: nobody begins a round before all have ended the one before, also when a call to
// wake comes late.
func TestTeamMeets(t *testing.T) {
	const n, rounds = 4, 300
	team := newTeam(n)
	defer team.close()
	var done [n]atomic.Int64
	for round := range int64(rounds) {
		team.run(func(i int) {
			for j := range done {
				if d := done[j].Load(); d < round {
					t.Errorf("part %d is in round %d while part %d has done %d", i, round, j, d)
				}
			}
			done[i].Add(1)
		})
	}
}

// TestSleeperLateRouse: a sleeper whose condition does not hold sleeps on when it is roused.
func TestSleeperLateRouse(t *testing.T) {
	s := newSleeper()
	var ready atomic.Bool
	woke := make(chan struct{})
	go func() {
		s.until(ready.Load)
		close(woke)
	}()
	for !s.asleep.Load() {
		runtime.Gosched()
	}
	s.rouse()
	for !s.asleep.Load() {
		select {
		case <-woke:
			t.Fatal("woke before its condition held")
		default:
			runtime.Gosched()
		}
	}
	ready.Store(true)
	s.rouse()
	s.rouse()
	<-woke
}
