package session

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	steps := func() {
		t.Helper()
		for i, most := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
			if got := b.Next(); got < most*time.Millisecond/2 || got > most*time.Millisecond {
				t.Errorf("wait %d is %v, want %v to %v ms", i, got, most/2, most)
			}
		}
	}
	steps()
	b.Reset()
	steps()
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[b.Next()] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d different waits of 100", len(seen))
	}
}
