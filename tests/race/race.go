// Package race tells tests whether the race detector is on. The detector makes code five to
// fifteen times slower, and makes sync.Pool drop objects at random.
package race

import "testing"

// SkipRealTime skips a test of a fabric in real time under the race detector.
func SkipRealTime(t *testing.T) {
	t.Helper()
	if Enabled {
		t.Skip("the race detector makes a fabric too slow for real time; make test runs this package without it too")
	}
}

// SkipSequential skips a long test with a single goroutine under the race detector, which could find nothing in it.
func SkipSequential(t *testing.T) {
	t.Helper()
	if Enabled {
		t.Skip("one goroutine, and minutes with the race detector; make test runs this package without it too")
	}
}
