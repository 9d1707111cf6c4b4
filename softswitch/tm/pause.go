package tm

import (
	"fmt"
	"math/bits"

	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// span is a time [from, until) in which a queue may not send.
type span struct{ from, until units.Time }

// pauses holds the times in which a queue may not send. A pause that is over still counts while
// packets may leave at times before its end, because a late caller computes departure times late.
// The queue owns it.
type pauses struct {
	spans    []span     // spans in order of time; they do not overlap
	earliest units.Time // no packet leaves before this time; spans may lack pauses before it

	packet.Pauses
}

// opens returns the first time from t on at which the queue is not paused.
func (p *pauses) opens(t units.Time) units.Time {
	t = max(t, p.earliest)
	for i := range p.spans {
		s := &p.spans[i]
		if t < s.from {
			break
		}
		t = max(t, s.until)
	}
	return t
}

// set pauses the queue from now until a later time. It replaces the pause in force, if there is
// one. An until that is not later than now ends that pause. now never decreases.
func (p *pauses) set(now, until units.Time) {
	if last := len(p.spans) - 1; last >= 0 && p.Until > now {
		p.spans[last].until = now
		if p.spans[last].from == now {
			p.spans = p.spans[:last]
		}
	}
	p.Set(now, until)
	if until <= now {
		return
	}
	if n := len(p.spans); n > 0 && p.spans[n-1].until == now {
		p.spans[n-1].until = until
		return
	}
	p.spans = append(p.spans, span{now, until})
}

// expire removes the pauses that ended by time by. After this call no packet may leave before by.
func (p *pauses) expire(by units.Time) {
	i := 0
	for i < len(p.spans) && p.spans[i].until <= by {
		i++
	}
	if i > 0 {
		p.spans = p.spans[:copy(p.spans, p.spans[i:])]
	}
}

// discardPast removes the pauses that can no longer delay a departure. at is when the next packet
// would leave without pauses.
func (p *pauses) discardPast(at, now units.Time) {
	p.earliest = max(p.earliest, min(p.opens(at), now))
	p.expire(p.earliest)
}

// Pause stops queue q of a port from sending from now until a later time. It replaces the pause in
// force, if there is one. An until that is not later than now ends that pause. A frame that has
// left the queue is sent to its end. Packets that were due before now still leave, with the times
// at which they were due. now never decreases.
func (m *Manager) Pause(id uint32, q int, until, now units.Time) error {
	p, err := m.port(id)
	if err != nil {
		return err
	}
	if q < 0 || q >= len(p.queues) {
		return fmt.Errorf("port %d has no queue %d: want 0 to %d", id, q, len(p.queues)-1)
	}
	queue := &p.queues[q]
	at := now
	if queue.Len() > 0 {
		at = max(queue.Front().enq, p.free)
	}
	queue.pauses.discardPast(at, now)
	queue.pauses.set(now, until)
	p.pausing |= 1 << q
	m.place(p)
	return nil
}

// expire removes the pauses of all queues that ended by time by. After this call no packet may leave the port
// before by.
func (p *port) expire(by units.Time) {
	for left := p.pausing; left != 0; left &= left - 1 {
		q := bits.TrailingZeros32(left)
		if p.queues[q].pauses.expire(by); len(p.queues[q].pauses.spans) == 0 && p.queues[q].pauses.earliest <= by {
			p.pausing &^= 1 << q
		}
	}
}

// nextPaused is like next, for a port with paused queues.
func (p *port) nextPaused() units.Time {
	first := units.MaxTime
	for left := p.full; left != 0; left &= left - 1 {
		q := &p.queues[bits.TrailingZeros32(left)]
		first = min(first, q.pauses.opens(max(q.ready(), p.free)))
	}
	return first
}

// paused reports whether queue i may not send at a time.
func (p *port) paused(i int, at units.Time) bool {
	return p.pausing>>i&1 != 0 && p.queues[i].pauses.opens(at) > at
}
