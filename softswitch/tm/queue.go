package tm

import (
	"sort"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/units"
)

// slot is a queued packet. Its size and times are kept beside it, so that the scheduler
// does not depend on what the engine does with the packet meanwhile.
type slot struct {
	p     *engine.Packet
	enq   units.Time
	bytes units.Bytes
	epoch uint32
}

// queue is a FIFO with limits: a ring that grows to what it needs and stays there.
type queue struct {
	ring  []slot // length a power of two, or zero
	head  int
	n     int
	bytes units.Bytes

	limit   Limit
	quantum units.Bytes
	deficit units.Bytes // may be negative after a frame that grew in egress
	pauses  pauses
	stats   QueueStats
}

// admits reports whether a packet of n bytes fits.
func (q *queue) admits(n units.Bytes) bool {
	return (q.limit.Packets == 0 || q.n < q.limit.Packets) &&
		(q.limit.Bytes == 0 || q.bytes+n <= q.limit.Bytes)
}

func (q *queue) push(s slot) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = s
	q.n++
	q.bytes += s.bytes
}

func (q *queue) grow() {
	ring := make([]slot, max(8, 2*len(q.ring)))
	copied := copy(ring, q.ring[q.head:])
	copy(ring[copied:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}

func (q *queue) pop() slot {
	s := q.ring[q.head]
	q.ring[q.head] = slot{}
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	q.bytes -= s.bytes
	return s
}

// front returns the packet that leaves next. The queue is not empty.
func (q *queue) front() *slot { return &q.ring[q.head] }

// ready returns the time from which the queue's first packet is there, MaxTime when there is
// none. Pauses come on top.
func (q *queue) ready() units.Time {
	if q.n == 0 {
		return units.MaxTime
	}
	return q.front().enq
}

// arrived returns how many of the packets in the queue came by time t. A caller that is in
// time finds none that came later.
func (q *queue) arrived(t units.Time) int {
	mask := len(q.ring) - 1
	if q.n == 0 || q.ring[(q.head+q.n-1)&mask].enq <= t {
		return q.n
	}
	return sort.Search(q.n, func(i int) bool { return q.ring[(q.head+i)&mask].enq > t })
}
