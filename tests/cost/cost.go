// Package cost tests that the processing cost of an untrusted frame or message hardly depends on the size of a
// table: it is about the same in a full table as in an almost empty one.
package cost

import (
	"testing"
	"time"
)

// Many is the size of the full table.
const Many = 1 << 16

// ratio bounds the cost of the full table over that of the small one. Memory outside the processor's cache
// costs about 5 times as much as memory in it; a scan of the table costs thousands of times as much.
const ratio = 40

// Flat calls the function that prepare returns, for a table of 1 entry and for one of Many, and fails when a
// call costs much more in the second. A call must not change the size of the table. Flat compares the fastest
// of several rounds, so that other work on the machine does not count.
func Flat(t *testing.T, prepare func(size int) func()) {
	t.Helper()
	small, large := best(prepare(1)), best(prepare(Many))
	t.Logf("%v with 1 entry, %v with %d", small, large, Many)
	if large > ratio*max(small, 20*time.Nanosecond) {
		t.Errorf("a call takes %v with %d entries and %v with one, want at most %d times as much", large, Many, small, ratio)
	}
}

func best(call func()) time.Duration {
	const rounds, calls = 20, 50
	least := time.Hour
	for range rounds {
		began := time.Now()
		for range calls {
			call()
		}
		least = min(least, time.Since(began)/calls)
	}
	return least
}
