package tm

import (
	"sort"

	"github.com/headgate/headgate/internal/ring"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/units"
)

// slot is a queued packet. It keeps the packet's size and times, so that the scheduler does not
// depend on what the engine does with the packet meanwhile.
type slot struct {
	p     *engine.Packet
	enq   units.Time
	bytes units.Bytes
	epoch uint32
}

type queue struct {
	ring.Ring[slot]
	bytes units.Bytes

	limit   Limit
	quantum units.Bytes
	deficit units.Bytes // negative after a frame that grew in egress
	pauses  pauses
	stats   QueueStats
}

func (q *queue) admits(n units.Bytes) bool {
	return (q.limit.Packets == 0 || q.Len() < q.limit.Packets) &&
		(q.limit.Bytes == 0 || q.bytes+n <= q.limit.Bytes)
}

// ready returns when the queue's first packet arrived, or MaxTime if the queue is empty. It
// ignores pauses.
func (q *queue) ready() units.Time {
	if q.Len() == 0 {
		return units.MaxTime
	}
	return q.Front().enq
}

// arrived returns the number of packets in the queue that arrived by time t. Later packets are in
// the queue only if the caller is late.
func (q *queue) arrived(t units.Time) int {
	n := q.Len()
	if n == 0 || q.At(n-1).enq <= t {
		return n
	}
	return sort.Search(n, func(i int) bool { return q.At(i).enq > t })
}
