// Package event is the simulator's agenda: events in the order (time, sequence), where the
// sequence is the order of scheduling, so that equal times never depend on chance.
//
// An event is a value, not a function: a kind and an argument that the owner dispatches on.
// Nothing is allocated per event. There is no cancelling: an owner keeps one pending event
// per link, port or flow and ignores one that has been overtaken.
package event

import (
	"math/bits"

	"github.com/headgate/headgate/units"
)

// Event is one entry of the agenda.
type Event struct {
	At   units.Time
	Kind uint32 // the owner's, below MaxKind
	Arg  int32  // the owner's: an index from 0 to MaxArg
}

// Bounds of what an event carries; both share one word, so that a node takes 16 bytes.
const (
	argBits = 28
	MaxArg  = 1<<argBits - 1
	MaxKind = 1 << (32 - argBits)
)

const (
	slots = 1 << 14
	words = slots / 64
	// defaultShift makes buckets of 256 ps and a wheel of 4.2 µs, which a packet at
	// 100 Gb/s over a 2 µs link fits into.
	defaultShift = 8
)

// Queue is an agenda; the zero value is an empty one. It is owned by one simulator and not
// safe for concurrent use.
//
// It is a timing wheel (Brown's calendar queue with fixed buckets): an event within the
// wheel's horizon goes to the bucket of its time, a short list in order; a bitmap finds the
// next bucket. Later events wait in a heap until the horizon reaches them. Since a bucket
// receives events from the heap before any can be scheduled into it directly, putting an
// event behind those of its own time keeps the order of scheduling without a number.
type Queue struct {
	now   units.Time
	cur   int64 // bucket of now; no event waits in an earlier one
	shift uint
	size  int // events in the wheel
	free  int32
	nodes []node
	tails []int32 // per slot: the last of its events, whose next is the first; 0 for none
	used  [words]uint64
	sum   [words / 64]uint64
	far   farHeap
}

type node struct {
	at   units.Time
	what uint32
	next int32
}

// NewQueue returns an agenda whose wheel covers at least horizon: the time from scheduling
// to happening that most events stay below.
func NewQueue(horizon units.Time) *Queue {
	q := &Queue{shift: defaultShift}
	for q.shift < 40 && units.Time(slots)<<q.shift < horizon {
		q.shift++
	}
	return q
}

// Now returns the time of the event last taken.
func (q *Queue) Now() units.Time { return q.now }

// Len returns the number of events that wait.
func (q *Queue) Len() int { return q.size + len(q.far.events) }

// Schedule adds an event. A time before Now is taken as Now: an effect never precedes its cause.
func (q *Queue) Schedule(at units.Time, kind uint32, arg int32) {
	if at < q.now {
		at = q.now
	}
	if q.tails == nil {
		q.start()
	}
	what := kind<<argBits | uint32(arg)
	if int64(at)>>q.shift-q.cur >= slots {
		q.far.push(at, what)
		return
	}
	q.insert(at, what)
}

func (q *Queue) start() {
	q.tails = make([]int32, slots)
	q.nodes = make([]node, 1, 1024)
	if q.shift == 0 {
		q.shift = defaultShift
	}
}

func (q *Queue) insert(at units.Time, what uint32) {
	n := q.free
	if n != 0 {
		q.free = q.nodes[n].next
	} else {
		n = int32(len(q.nodes))
		q.nodes = append(q.nodes, node{})
	}
	q.size++
	slot := uint(int64(at)>>q.shift) % slots
	nodes := q.nodes
	e := &nodes[n]
	e.at, e.what = at, what
	t := q.tails[slot]
	if t == 0 {
		e.next = n
		q.tails[slot] = n
		q.used[slot/64] |= 1 << (slot % 64)
		q.sum[slot/4096] |= 1 << (slot / 64 % 64)
		return
	}
	last := &nodes[t]
	if at >= last.at {
		e.next = last.next
		last.next = n
		q.tails[slot] = n
		return
	}
	// Behind all that are not later; t is before the first.
	for nodes[last.next].at <= at {
		last = &nodes[last.next]
	}
	e.next = last.next
	last.next = n
}

// Next takes the earliest event if it is not later than until.
func (q *Queue) Next(until units.Time) (Event, bool) {
	if q.size == 0 && !q.jump(until) {
		return Event{}, false
	}
	slot := q.first()
	t := q.tails[slot]
	last := &q.nodes[t]
	n := last.next
	e := &q.nodes[n]
	if e.at > until {
		return Event{}, false
	}
	if n == t {
		q.tails[slot] = 0
		w := q.used[slot/64] &^ (1 << (slot % 64))
		q.used[slot/64] = w
		if w == 0 {
			q.sum[slot/4096] &^= 1 << (slot / 64 % 64)
		}
	} else {
		last.next = e.next
	}
	q.size--
	e.next = q.free
	q.free = n
	at, what := e.at, e.what
	q.now = at
	if b := int64(at) >> q.shift; b != q.cur {
		q.cur = b
		if len(q.far.events) > 0 {
			q.draw()
		}
	}
	return Event{At: at, Kind: what >> argBits, Arg: int32(what & MaxArg)}, true
}

// first returns the slot of the earliest event of the wheel, which is not empty.
func (q *Queue) first() uint {
	slot := uint(q.cur) % slots
	if w := q.used[slot/64] >> (slot % 64); w != 0 {
		return slot + uint(bits.TrailingZeros64(w))
	}
	// The next word in use, cyclically; the present one's lower bits come last.
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
	if len(q.far.events) == 0 || q.far.events[0].at > until {
		return false
	}
	q.now = q.far.events[0].at
	q.cur = int64(q.now) >> q.shift
	q.draw()
	return true
}

// draw moves the heap's events that the horizon has reached into the wheel.
func (q *Queue) draw() {
	for len(q.far.events) > 0 && int64(q.far.events[0].at)>>q.shift-q.cur < slots {
		e := q.far.pop()
		q.insert(e.at, e.what)
	}
}
