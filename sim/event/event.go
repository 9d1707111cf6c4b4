// Package event is the simulator's event queue: events in the order (time, kind, argument). The order does not depend
// on when an event was scheduled. So the events of a node happen in the same order, whether the fabric has one queue or
// several.
//
// An event is a value, not a function: a kind and an argument that the owner dispatches on.
// Nothing is allocated per event. There is no cancelling: an owner keeps one pending event
// per link, port or flow and ignores one that has been overtaken.
package event

import (
	"math"

	"github.com/headgate/headgate/units"
)

// Event is one entry of a Queue.
type Event struct {
	At units.Time
	What
}

// Before reports whether e happens before o.
func (e Event) Before(o Event) bool {
	return e.At < o.At || e.At == o.At && e.What < o.What
}

// Bounds of an event's kind and argument; both share one word.
const (
	argBits = 28
	MaxArg  = 1<<argBits - 1
	MaxKind = 1 << (32 - argBits)
)

// What is an event's kind, below MaxKind, and its argument, from 0 to MaxArg, in one word. The owner defines both.
// Events of one time happen in the order of What.
type What uint32

// Never is after every event of a time.
const Never = What(math.MaxUint32)

// New returns an event's kind and argument.
func New(kind uint32, arg int32) What { return What(kind<<argBits | uint32(arg)) }

// Kind returns the kind of the event.
func (w What) Kind() uint32 { return uint32(w) >> argBits }

// Arg returns its argument.
func (w What) Arg() int32 { return int32(w & MaxArg) }

// none is First's result for an empty queue.
var none = Event{units.MaxTime, Never}

// arity is the number of children of a node of the heap.
const arity = 4

// Queue is a queue of events, a heap. One simulator owns it; it is not safe for concurrent use. Its zero value is
// ready.
type Queue struct {
	now  units.Time // time of the event taken last
	heap []Event
}

// Len returns the number of events that wait.
func (q *Queue) Len() int { return len(q.heap) }

// Schedule adds an event. If at is before the time of the event taken last, that time counts instead, because an effect
// never precedes its cause.
func (q *Queue) Schedule(at units.Time, kind uint32, arg int32) {
	e := Event{max(at, q.now), New(kind, arg)}
	h := append(q.heap, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / arity
		if !e.Before(h[parent]) {
			break
		}
		h[i], i = h[parent], parent
	}
	h[i], q.heap = e, h
}

// First returns the earliest event and keeps it in the queue. It returns Never at MaxTime for an empty queue.
func (q *Queue) First() Event {
	if len(q.heap) == 0 {
		return none
	}
	return q.heap[0]
}

// Next takes the earliest event if its time is not later than until.
func (q *Queue) Next(until units.Time) (e Event, ok bool) {
	if e := q.First(); e.At > until || e.What == Never {
		return Event{}, false
	}
	return q.Take(), true
}

// Take takes the earliest event. The queue must not be empty.
func (q *Queue) Take() Event {
	first, n := q.heap[0], len(q.heap)-1
	e, h := q.heap[n], q.heap[:n]
	i := 0
	for least := 1; least < n; least = i*arity + 1 {
		for c := least + 1; c < min(i*arity+1+arity, n); c++ {
			if h[c].Before(h[least]) {
				least = c
			}
		}
		if !h[least].Before(e) {
			break
		}
		h[i], i = h[least], least
	}
	if n > 0 {
		h[i] = e
	}
	q.heap, q.now = h, first.At
	return first
}
