package session

import (
	"math/rand/v2"
	"time"
)

// Backoff is how long to wait before trying again: Min at first, twice as long each time up to
// Max, shortened by up to half at random so that many who failed together do not try together.
type Backoff struct {
	Min, Max time.Duration
	last     time.Duration // without the random part; 0 before the first
}

// Next returns the next wait.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.Min), b.Max)
	return b.last/2 + rand.N(b.last/2+1)
}

// Reset begins again with Min.
func (b *Backoff) Reset() { b.last = 0 }
