package headroom

import (
	"testing"
	"unsafe"
)

// TestLayout keeps what most packets look at in four cache lines of 64 B.
func TestLayout(t *testing.T) {
	var m MMU
	queues, wakes, peak := unsafe.Offsetof(m.queues), unsafe.Offsetof(m.queueWakes), unsafe.Offsetof(m.stats)
	if peak += unsafe.Offsetof(m.stats.Peak.Shared); queues != 64 || wakes != 128 || peak >= 256 {
		t.Errorf("queues at %d, wakes at %d, peak of the shared pool at %d; want 64, 128, below 256", queues, wakes, peak)
	}
}
