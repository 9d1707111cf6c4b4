package headroom

import (
	"testing"
	"unsafe"
)

// TestLayout checks that the fields that most packets use are in two cache lines of 64 B.
func TestLayout(t *testing.T) {
	var m MMU
	private, resumeHeap := unsafe.Offsetof(m.private), unsafe.Offsetof(m.pausedQueues)
	if resumeHeap += unsafe.Sizeof(m.pausedQueues.order); private != 64 || resumeHeap > 128 {
		t.Errorf("private memory at %d, the order of who waits ends at %d; want 64, 128 at most", private, resumeHeap)
	}
}
