package sim

import (
	"testing"
	"unsafe"
)

// TestLayout checks that fields that are used together share a cache line.
func TestLayout(t *testing.T) {
	var p port
	if q, all := unsafe.Offsetof(p.queues), unsafe.Sizeof(p); q != 64 || all != 320 {
		t.Errorf("queues at %d, %d B in all; want 64, 320", q, all)
	}
	if n := unsafe.Sizeof(packet{}); n != 24 {
		t.Errorf("a packet takes %d B, want 24", n)
	}
	if n := unsafe.Sizeof(xferPacket{}); n != 32 {
		t.Errorf("a parcel takes %d B, want 32", n)
	}
	var f flow
	if rx, all := unsafe.Offsetof(f.rx), unsafe.Sizeof(f); rx != 64 || all != 128 {
		t.Errorf("a flow's receiver at %d, %d B in all; want 64, 128", rx, all)
	}
}
