package transport

import "github.com/headgate/headgate/units"

// sendRing holds when each packet in flight was sent, indexed by packet number modulo its
// size, a power of two. It doubles when the window outgrows it, so a flow that has reached
// its window allocates nothing.
type sendRing struct {
	slots []units.Time // the complement, below zero, for what was sent more than once
}

const firstRing = 32

// put records packet i, of which those from una on are still in flight.
func (r *sendRing) put(i, una uint64, now units.Time, resent bool) {
	if i-una >= uint64(len(r.slots)) {
		grown := make([]units.Time, max(2*len(r.slots), firstRing))
		for j := una; j < i; j++ {
			grown[j&uint64(len(grown)-1)] = r.slots[j&uint64(len(r.slots)-1)]
		}
		r.slots = grown
	}
	if resent {
		now = ^now
	}
	r.slots[i&uint64(len(r.slots)-1)] = now
}

func (r *sendRing) get(i uint64) (sent units.Time, resent bool) {
	sent = r.slots[i&uint64(len(r.slots)-1)]
	return max(sent, ^sent), sent < 0
}
