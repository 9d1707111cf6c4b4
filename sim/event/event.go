// Package event is the simulator's event queue: events in the order (time, kind, argument). The order
// knows nothing of when an event was scheduled, so that the events of a node happen in the same
// order whether its fabric has one queue or several.
//
// An event is a value, not a function: a kind and an argument that the owner dispatches on.
// Nothing is allocated per event. There is no cancelling: an owner keeps one pending event
// per link, port or flow and ignores one that has been overtaken.
package event

import (
	"math"
	"math/bits"
	"slices"

	"github.com/headgate/headgate/internal/heap"
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

// Bounds of what an event carries; both share one word.
const (
	argBits = 28
	MaxArg  = 1<<argBits - 1
	MaxKind = 1 << (32 - argBits)
)

// What is a kind, below MaxKind, and an argument from 0 to MaxArg, both the owner's, in one word: in the order in which
// events of one time happen.
type What uint32

// Never is after every event of a time.
const Never = What(math.MaxUint32)

// Of returns what an event is.
func Of(kind uint32, arg int32) What { return What(kind<<argBits | uint32(arg)) }

// Kind returns the kind of the event.
func (w What) Kind() uint32 { return uint32(w) >> argBits }

// Arg returns its argument.
func (w What) Arg() int32 { return int32(w & MaxArg) }

const (
	slots = 1 << 13
	words = slots / 64
	// defaultShift makes buckets of 512 ps and a wheel of 4.2 µs, which a packet at
	// 100 Gb/s over a 2 µs link fits into.
	defaultShift = 9
	maxShift     = 32 // a time within a bucket has 32 bits
)

// Queue is a queue of events, owned by one simulator and not safe for concurrent use.
//
// It is a timing wheel (Brown's calendar queue with fixed buckets): an event within the
// wheel's horizon goes to the bucket of its time, an unordered list; a bitmap finds the
// next bucket. Its events are sorted when their time comes, mostly a few, and taken from an
// array (the bottom of Tang, Goh and Thng's ladder queue). Later events wait in a heap until the
// horizon reaches them.
type Queue struct {
	now   units.Time
	cur   int64      // the present bucket; no event waits in an earlier one
	base  units.Time // where it begins
	keys  []uint64   // its events, the last first: the time since base above what happens
	shift uint
	size  int // events in the wheel
	free  int32
	nodes []node // the first stands for none
	used  [words]uint64
	sum   [words / 64]uint64
	far   heap.Heap[Event]
	soon  units.Time   // no event is earlier; when the first of the present bucket happens, if it has one
	heads [slots]int32 // per slot: the first of its events
}

type node struct {
	key  uint64
	next int32
}

// NewQueue returns an empty queue whose wheel covers at least horizon. Most events should be scheduled
// less than horizon ahead.
func NewQueue(horizon units.Time) *Queue {
	q := &Queue{shift: defaultShift, far: heap.New(Event.Before, func(Event, int) {})}
	for q.shift < maxShift && units.Time(slots)<<q.shift < horizon {
		q.shift++
	}
	return q
}

// Now returns the time of the event last taken.
func (q *Queue) Now() units.Time { return q.now }

// Len returns the number of events that wait.
func (q *Queue) Len() int { return q.size + len(q.keys) + q.far.Len() }

// Schedule adds an event. A time before Now is taken as Now: an effect never precedes its cause.
func (q *Queue) Schedule(at units.Time, kind uint32, arg int32) {
	q.insert(max(at, q.now), Of(kind, arg))
}

func (q *Queue) insert(at units.Time, what What) {
	shift := q.shift % 64
	bucket := int64(at) >> shift
	key := uint64(at)&(1<<shift-1)<<32 | uint64(what)
	switch ahead := bucket - q.cur; {
	case ahead >= slots:
		q.soon = min(q.soon, at)
		q.far.Push(Event{at, what})
		return
	case ahead == 0:
		q.insertNow(key)
		return
	}
	q.soon = min(q.soon, at)
	n := q.free
	if n == 0 {
		n = q.grow()
	}
	slot := uint(bucket) % slots
	head := q.heads[slot]
	q.heads[slot] = n
	q.size++
	place := &q.nodes[n]
	q.free = place.next
	place.key, place.next = key, head
	if head == 0 {
		q.used[slot/64] |= 1 << (slot % 64)
		q.sum[slot/4096] |= 1 << (slot / 64 % 64)
	}
}

// grow returns the index of an unused node.
func (q *Queue) grow() int32 {
	if len(q.nodes) == 0 {
		q.nodes = make([]node, 1, 1024)
	}
	q.nodes = append(q.nodes, node{})
	return int32(len(q.nodes) - 1)
}

// insertNow adds an event to the present bucket.
func (q *Queue) insertNow(key uint64) {
	keys := append(q.keys, key)
	i := len(keys) - 1
	for ; i > 0 && keys[i-1] < key; i-- {
		keys[i] = keys[i-1]
	}
	keys[i] = key
	q.keys = keys
	q.soon = q.base + units.Time(keys[len(keys)-1]>>32)
}

// Next takes the earliest event if it is not later than until.
func (q *Queue) Next(until units.Time) (Event, bool) {
	if !q.Before(until, Never) {
		return Event{}, false
	}
	return q.Take(), true
}

// Soon returns a time that no event is earlier than.
func (q *Queue) Soon() units.Time { return q.soon }

// Before reports whether the earliest event comes before another one, which the caller holds. If it
// does, Take takes it. If not, the caller must handle its own event next, or one scheduled earlier
// than it, because the queue may have advanced to its time.
func (q *Queue) Before(at units.Time, what What) bool {
	if len(q.keys) == 0 && (q.soon > at || !q.advance(at)) {
		return false
	}
	return q.soon < at || q.soon == at && What(q.keys[len(q.keys)-1]) < what
}

// Take takes the earliest event. Before must have reported true.
func (q *Queue) Take() Event {
	n := len(q.keys) - 1
	e := event(q.base, q.keys[n])
	q.keys = q.keys[:n]
	q.now = e.At
	if n > 0 {
		q.soon = q.base + units.Time(q.keys[n-1]>>32)
	}
	return e
}

func event(base units.Time, key uint64) Event {
	return Event{base + units.Time(key>>32), What(key)}
}

// Peek returns the earliest event and leaves it; false when none waits.
func (q *Queue) Peek() (Event, bool) {
	switch {
	case len(q.keys) > 0:
		return event(q.base, q.keys[len(q.keys)-1]), true
	case q.size > 0:
		slot := q.first()
		return event(units.Time(q.bucket(slot))<<q.shift, q.least(slot)), true
	case q.far.Len() > 0:
		return q.far.First(), true
	}
	return Event{}, false
}

// bucket returns the bucket that a slot holds.
func (q *Queue) bucket(slot uint) int64 {
	return q.cur + int64((slot-uint(q.cur))%slots)
}

// least returns the first key of a slot in use.
func (q *Queue) least(slot uint) uint64 {
	n := q.heads[slot]
	key := q.nodes[n].key
	for n = q.nodes[n].next; n != 0; n = q.nodes[n].next {
		key = min(key, q.nodes[n].key)
	}
	return key
}

// advance makes the bucket of the wheel's earliest event the present one, if it is due by until. The
// present bucket must be empty. A later bucket stays, because events may still be scheduled before it.
func (q *Queue) advance(until units.Time) bool {
	if q.size == 0 {
		return q.jump(until)
	}
	slot := q.first()
	bucket := q.bucket(slot)
	shift := q.shift % 64
	base := units.Time(bucket) << shift
	if until < base {
		q.soon = base
		return false
	}
	if until-base < 1<<shift {
		if least := base + units.Time(q.least(slot)>>32); least > until {
			q.soon = least
			return false
		}
	}
	n := q.heads[slot]
	q.heads[slot] = 0
	last := &q.nodes[n]
	keys := append(q.keys[:0], last.key)
	for last.next != 0 {
		last = &q.nodes[last.next]
		keys = append(keys, last.key)
	}
	last.next = q.free
	q.free = n
	w := q.used[slot/64] &^ (1 << (slot % 64))
	q.used[slot/64] = w
	if w == 0 {
		q.sum[slot/4096] &^= 1 << (slot / 64 % 64)
	}
	q.size -= len(keys)
	if len(keys) > 1 {
		order(keys)
	}
	q.keys = keys
	q.cur, q.base = bucket, base
	q.soon = base + units.Time(keys[len(keys)-1]>>32)
	if q.reached() {
		q.draw()
	}
	return true
}

// order sorts the keys of a bucket, the last first. They are mostly in this order already, because the
// event that was scheduled first is at the end of the bucket's list.
func order(keys []uint64) {
	if len(keys) > 64 {
		slices.Sort(keys)
		slices.Reverse(keys)
		return
	}
	for i := 1; i < len(keys); i++ {
		key, j := keys[i], i
		for ; j > 0 && keys[j-1] < key; j-- {
			keys[j] = keys[j-1]
		}
		keys[j] = key
	}
}

// first returns the slot of the earliest event of the wheel, which is not empty.
func (q *Queue) first() uint {
	slot := uint(q.cur) % slots
	if w := q.used[slot/64] >> (slot % 64); w != 0 {
		return slot + uint(bits.TrailingZeros64(w))
	}
	// The next word in use, cyclically. The lower bits of the present word come last.
	word := (slot/64 + 1) % words
	group := word / 64
	s := q.sum[group] >> (word % 64) << (word % 64)
	for s == 0 {
		group = (group + 1) % uint(len(q.sum))
		s = q.sum[group]
	}
	word = group*64 + uint(bits.TrailingZeros64(s))
	return word*64 + uint(bits.TrailingZeros64(q.used[word]))
}

// jump moves an empty wheel to the earliest event of the heap, if it is due.
func (q *Queue) jump(until units.Time) bool {
	if q.far.Len() == 0 {
		q.soon = units.MaxTime
		return false
	}
	q.soon = q.far.First().At
	if q.soon > until {
		return false
	}
	q.cur = int64(q.soon) >> q.shift
	q.base = units.Time(q.cur) << q.shift
	q.draw()
	return true
}

// draw moves the heap's events within the horizon into the wheel.
func (q *Queue) draw() {
	for q.reached() {
		e := q.far.Remove(0)
		q.insert(e.At, e.What)
	}
}

// reached reports whether the horizon has reached an event of the heap.
func (q *Queue) reached() bool {
	return q.far.Len() > 0 && int64(q.far.First().At)>>(q.shift%64)-q.cur < slots
}
