package tm

import (
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Counter counts packets and their bytes.
type Counter struct {
	Packets uint64
	Bytes   units.Bytes
}

func (c *Counter) add(n units.Bytes) {
	c.Packets++
	c.Bytes += n
}

// QueueStats holds a queue's counters. Enqueued equals Dequeued plus the packets in the queue,
// because dropped packets do not count as enqueued. Lengths are those at enqueue.
type QueueStats struct {
	Enqueued, Dequeued, Dropped Counter

	Packets    int         // packets in the queue now
	Bytes      units.Bytes // bytes in the queue now
	MaxPackets int         // highest value of Packets so far
	MaxBytes   units.Bytes
	Limit      Limit

	Paused packet.Pauses
}

// PortStats holds a port's counters.
type PortStats struct {
	Port   uint32
	Rate   units.Rate // 0: unlimited
	Sent   Counter    // frames on the wire, as they left egress, without overhead
	Queues []QueueStats
}

// Dropped returns the tail drops of all queues.
func (s PortStats) Dropped() Counter {
	var c Counter
	for i := range s.Queues {
		c.Packets += s.Queues[i].Dropped.Packets
		c.Bytes += s.Queues[i].Dropped.Bytes
	}
	return c
}

// PauseTimes returns the pause time of each queue.
func (s PortStats) PauseTimes() []units.Time {
	times := make([]units.Time, len(s.Queues))
	for q := range s.Queues {
		times[q] = s.Queues[q].Paused.Time
	}
	return times
}

// Stats fills s with the port's counters and reuses its slice. It returns false if there is no
// such port.
func (m *Manager) Stats(id uint32, s *PortStats) bool {
	p, ok := m.ports[id]
	if !ok {
		return false
	}
	p.fill(s)
	return true
}

func (p *port) fill(s *PortStats) {
	s.Port, s.Rate, s.Sent = p.id, p.rate, p.sent
	s.Queues = s.Queues[:0]
	for i := range p.queues {
		q := &p.queues[i]
		st := q.stats
		st.Packets, st.Bytes, st.Limit = q.Len(), q.bytes, q.limit
		st.Paused = q.pauses.Pauses
		s.Queues = append(s.Queues, st)
	}
}
