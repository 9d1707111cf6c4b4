package lag

import (
	"fmt"
	"runtime"
	"testing"
)

// Held returns how many bytes what an attempt makes keeps reachable. What earlier tests left to their goroutines
// may be dropped meanwhile: an attempt after which the heap is not what it was proves nothing and is made again,
// and after the third the test is skipped as invalid.
func Held(t testing.TB, attempt func() any) (bytes float64) {
	t.Helper()
	invalid := Repeat(t, 3, func() string {
		before := Heap()
		made := attempt()
		with := Heap()
		runtime.KeepAlive(made)
		made = nil
		after := Heap()
		bytes = float64(with) - float64(before)
		if off := float64(after) - float64(before); max(off, -off) > 0.02*bytes {
			return fmt.Sprintf("the heap had %d bytes before, %d with what is measured and %d after it", before, with, after)
		}
		return ""
	})
	if invalid != "" {
		t.Skip("invalid: " + invalid)
	}
	return bytes
}

// Heap returns the bytes that are reachable.
func Heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
