package tm

import (
	"fmt"
	"math/bits"

	"github.com/headgate/headgate/units"
)

// span is a time [from, until) in which a queue may not send.
type span struct{ from, until units.Time }

// pauses hold a queue back. Departure times are computed, so that besides the pause that
// holds now those before it count for as long as packets may leave at times before it. The
// queue owns it.
type pauses struct {
	spans []span     // in order, apart from each other
	hold  units.Time // nothing leaves before, whatever was paused until then

	count uint64     // times that the queue became paused
	total units.Time // of all pauses, until the end of the last
	end   units.Time // of the last
}

// opens returns the first time from t on at which no pause holds.
func (p *pauses) opens(t units.Time) units.Time {
	t = max(t, p.hold)
	for i := range p.spans {
		s := &p.spans[i]
		if t < s.from {
			break
		}
		t = max(t, s.until)
	}
	return t
}

// set replaces the pause that holds at time now, if one does, by one until a later time, or
// by none. now never decreases.
func (p *pauses) set(now, until units.Time) {
	if last := len(p.spans) - 1; last >= 0 && p.end > now {
		p.total -= p.end - now
		p.end, p.spans[last].until = now, now
		if p.spans[last].from == now {
			p.spans = p.spans[:last]
		}
	} else if until > now {
		p.count++
	}
	if until <= now {
		return
	}
	p.total += until - now
	p.end = until
	if n := len(p.spans); n > 0 && p.spans[n-1].until == now {
		p.spans[n-1].until = until
		return
	}
	p.spans = append(p.spans, span{now, until})
}

// expire forgets the pauses that ended by a time before which nothing leaves any more.
func (p *pauses) expire(by units.Time) {
	i := 0
	for i < len(p.spans) && p.spans[i].until <= by {
		i++
	}
	if i > 0 {
		p.spans = p.spans[:copy(p.spans, p.spans[i:])]
	}
}

// settle forgets the pauses that no departure can meet any more: at is the earliest time of
// one if nothing were paused.
func (p *pauses) settle(at, now units.Time) {
	p.hold = max(p.hold, min(p.opens(at), now))
	p.expire(p.hold)
}

// Pause keeps queue q of a port from sending from now on until a later time, in place of
// the pause before it, if one holds; a time that is not later ends that one. A frame that
// has left the queue goes on. Packets that should have left before now still do so, with
// the times at which they should have. now never decreases.
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
	if queue.n > 0 {
		at = max(queue.front().enq, p.free)
	}
	queue.pauses.settle(at, now)
	queue.pauses.set(now, until)
	p.held |= 1 << q
	m.place(p)
	return nil
}

// expire forgets the pauses that ended by a time before which nothing leaves the port any
// more.
func (p *port) expire(by units.Time) {
	for left := p.held; left != 0; left &= left - 1 {
		q := bits.TrailingZeros32(left)
		if p.queues[q].pauses.expire(by); len(p.queues[q].pauses.spans) == 0 && p.queues[q].pauses.hold <= by {
			p.held &^= 1 << q
		}
	}
}

// nextHeld is next with queues paused.
func (p *port) nextHeld() units.Time {
	first := units.MaxTime
	for left := p.full; left != 0; left &= left - 1 {
		q := &p.queues[bits.TrailingZeros32(left)]
		first = min(first, q.pauses.opens(max(q.ready(), p.free)))
	}
	return first
}

// paused reports whether queue i may not send at a time.
func (p *port) paused(i int, at units.Time) bool {
	return p.held>>i&1 != 0 && p.queues[i].pauses.opens(at) > at
}
