package event

import "github.com/headgate/headgate/units"

// farHeap holds the events beyond the wheel's horizon: a four-ary heap of values ordered by
// (time, what). Four-ary has half the levels of a binary heap, and the children of a
// node lie in at most two cache lines. The Queue owns it.
type farHeap struct {
	events []farEvent
}

type farEvent struct {
	at   units.Time
	what What
}

func (e *farEvent) before(o *farEvent) bool {
	return e.at < o.at || e.at == o.at && e.what < o.what
}

func (f *farHeap) push(at units.Time, what What) {
	e := farEvent{at: at, what: what}
	f.events = append(f.events, e)
	h, i := f.events, len(f.events)-1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

func (f *farHeap) pop() farEvent {
	h := f.events
	first := h[0]
	n := len(h) - 1
	last := h[n]
	h = h[:n]
	f.events = h
	if n == 0 {
		return first
	}
	// Sift a hole down to a leaf, always towards the smallest child, and the last event up
	// from there: it came from a leaf and mostly belongs near one.
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		best := child
		for c, end := child+1, min(child+4, n); c < end; c++ {
			if h[c].before(&h[best]) {
				best = c
			}
		}
		h[i] = h[best]
		i = best
	}
	for i > 0 {
		parent := (i - 1) / 4
		if !last.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = last
	return first
}
