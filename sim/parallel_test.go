package sim

import (
	"sync/atomic"
	"testing"
)

// TestWorkerPoolRounds: no worker begins a round before all have ended the last one, even if a wake-up call comes
// late.
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
