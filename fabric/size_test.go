package fabric

import (
	"testing"
	"unsafe"
)

// TestPortLayout keeps what belongs together in one cache line.
func TestPortLayout(t *testing.T) {
	var p port
	if w, q, all := unsafe.Offsetof(p.wire), unsafe.Offsetof(p.queues), unsafe.Sizeof(p); w != 64 || q != 128 || all != 320 {
		t.Errorf("wire at %d, queues at %d, %d B in all; want 64, 128, 320", w, q, all)
	}
	if n := unsafe.Sizeof(packet{}); n != 32 {
		t.Errorf("a packet takes %d B, want 32", n)
	}
}
