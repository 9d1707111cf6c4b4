package clock

import "github.com/headgate/headgate/units"

// event is one pending call. Events are ordered by time, and by the order in which they
// were scheduled among equal times.
type event struct {
	at    units.Time
	seq   uint64
	fn    func()
	timer *Timer // nil when nobody can cancel the event
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// arity is the number of children of a heap node: four keeps the tree shallow and a
// node's children within two cache lines or so.
const arity = 4

// queue is a heap of events by value: scheduling allocates nothing once it has grown.
type queue []event

func (q *queue) push(e event) {
	*q = append(*q, e)
	q.up(len(*q) - 1)
}

// remove takes out and returns the event at index i.
func (q *queue) remove(i int) event {
	h := *q
	e := h[i]
	last := len(h) - 1
	moved := h[last]
	h[last] = event{} // drop the references
	*q = h[:last]
	if i != last {
		h[i] = moved
		q.down(i)
		q.up(i) // at most one of the two moves it
	}
	if e.timer != nil {
		e.timer.index = idle
	}
	return e
}

func (q *queue) up(i int) {
	h := *q
	e := h[i]
	for i > 0 {
		parent := (i - 1) / arity
		if !e.before(&h[parent]) {
			break
		}
		h.place(i, h[parent])
		i = parent
	}
	h.place(i, e)
}

func (q *queue) down(i int) {
	h := *q
	e := h[i]
	for {
		first := i*arity + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&e) {
			break
		}
		h.place(i, h[least])
		i = least
	}
	h.place(i, e)
}

// place puts e at index i and tells its timer where it is.
func (q queue) place(i int, e event) {
	q[i] = e
	if e.timer != nil {
		e.timer.index = i
	}
}
