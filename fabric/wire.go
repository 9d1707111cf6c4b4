package fabric

import "github.com/headgate/headgate/units"

// wire is one direction of a link: the packets on it, in the order of arrival. Its port
// owns it. It is a ring beside the pool so that a packet that is passed on at once is not
// looked at: after a microsecond of a large fabric's time it has left the cache, and
// fetching it would cost as much as all else that a hop takes.
type wire struct {
	ring []onWire // a power of two long
	head uint32
	n    uint32
}

// onWire is a packet on a link with what the node at the other end needs to pass it on,
// in 16 bytes: in what, the time of arrival modulo 2^44 ps, the frame's size in 14 bits,
// its class and its kind in three bits each. The largest frame at the lowest rate of a link
// and the longest delay that topo allows together stay well below 2^44 ps, 17.6 s.
type onWire struct {
	what  uint64
	k     int32
	route int32 // see packet
}

const (
	whatShift = 20
	whatTimes = 1<<(64-whatShift) - 1
	// maxFrame fits in the 14 bits of a size.
	maxFrame = 1<<14 - 1
)

func pack(k, route int32, size uint16, class uint8, kd kind) onWire {
	return onWire{what: uint64(size)<<6 | uint64(class)<<3 | uint64(kd), k: k, route: route}
}

func (e *onWire) size() uint16 { return uint16(e.what >> 6 & maxFrame) }
func (e *onWire) class() uint8 { return uint8(e.what >> 3 & 7) }
func (e *onWire) kind() kind   { return kind(e.what & 7) }

// at returns the packet with its time of arrival.
func (e onWire) at(at units.Time) onWire {
	e.what = e.what&(1<<whatShift-1) | uint64(at)<<whatShift
	return e
}

// due returns when a packet on the wire arrives, which is not before now.
func (e *onWire) due(now units.Time) units.Time {
	return now + units.Time((e.what>>whatShift-uint64(now))&whatTimes)
}

func (w *wire) full() bool { return int(w.n) == len(w.ring) }

// push puts a packet on the wire, which is not full, that arrives at a time, not before those
// pushed earlier.
func (w *wire) push(at units.Time, e onWire) {
	w.ring[(w.head+w.n)&uint32(len(w.ring)-1)] = e.at(at)
	w.n++
}

func (w *wire) grow() {
	ring := make([]onWire, max(16, 2*len(w.ring)))
	for i := range w.n {
		ring[i] = w.ring[(w.head+i)&uint32(len(w.ring)-1)]
	}
	w.ring, w.head = ring, 0
}

// pop takes the first packet; there must be one.
func (w *wire) pop() onWire {
	e := w.ring[w.head]
	w.head = (w.head + 1) & uint32(len(w.ring)-1)
	w.n--
	if w.n == 0 {
		w.head = 0 // a link that is little used stays in the first cache lines of its ring
	}
	return e
}

// next returns when the first packet arrives; there must be one.
func (w *wire) next(now units.Time) units.Time { return w.ring[w.head].due(now) }
