package port

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestXDPRing plays the kernel's side of a ring of frames to send, from an index shortly
// before the wrap at 2³².
func TestXDPRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := math.MaxUint32 - rapid.Uint32Range(0, 20).Draw(t, "before the wrap")
		producer, consumer, flags := start, start, uint32(0)
		ring := xdpRing[uint64]{producer: &producer, consumer: &consumer, flags: &flags, entries: make([]uint64, 8), next: start}
		peer := xdpRing[uint64]{producer: &producer, consumer: &consumer, flags: &flags, entries: ring.entries, next: start}
		var pushed, popped uint64
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			room := uint32(8) - ring.pending() - ring.unpublished()
			for range rapid.Uint32Range(0, room).Draw(t, "push") {
				ring.push(pushed)
				pushed++
			}
			if rapid.Bool().Draw(t, "publish") {
				ring.publish()
			}
			if held := uint64(ring.unpublished()); uint64(peer.ready())+held != pushed-popped {
				t.Fatalf("%d ready and %d unpublished of %d pushed and %d popped", peer.ready(), held, pushed, popped)
			}
			for range rapid.Uint32Range(0, peer.ready()).Draw(t, "pop") {
				if got := peer.pop(); got != popped {
					t.Fatalf("popped %d, want %d", got, popped)
				}
				popped++
			}
			peer.done()
		}
	})
}

func TestXDPChunk(t *testing.T) {
	for mtu, want := range map[int]int{68: 2048, 1500: 2048, 1770: 2048, 1771: 4096, 3818: 4096} {
		if got, err := xdpChunk(mtu); err != nil || got != want {
			t.Errorf("MTU %d: chunk of %d bytes, %v, want %d", mtu, got, err, want)
		}
	}
	if n, err := xdpChunk(65536); err == nil {
		t.Errorf("MTU 65536: chunk of %d bytes, want an error", n)
	}
}
