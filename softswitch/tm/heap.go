package tm

import (
	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/units"
)

// newDepartures returns a heap of ports ordered by their next departure. Among equal departures
// the port that was added first comes first, so that runs are repeatable.
func newDepartures() heap.Heap[*port] {
	return heap.New(func(a, b *port) bool {
		return a.departure < b.departure || a.departure == b.departure && a.order < b.order
	}, func(p *port, at int) { p.index = at })
}

// place moves a port to the position of its next departure in the heap, or removes it when it has
// nothing to send. It does nothing for a port that is sending, which Complete places.
func (m *Manager) place(p *port) {
	if p.sending >= 0 {
		return
	}
	at := p.next()
	switch {
	case at == units.MaxTime:
		m.remove(p)
	case p.index == heap.Outside:
		p.departure = at
		m.heap.Push(p)
	default:
		p.departure = at
		m.heap.Fix(p.index)
	}
}

// remove removes a port from the heap, if it is there.
func (m *Manager) remove(p *port) {
	if p.index != heap.Outside {
		m.heap.Remove(p.index)
	}
}
