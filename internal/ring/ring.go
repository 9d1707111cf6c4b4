// Package ring provides queues in a ring of memory: Ring is a FIFO that grows, Last keeps the last values
// of a sequence.
package ring

import "iter"

// Ring is a FIFO that grows to the needed size and does not shrink. The zero value is empty.
type Ring[T any] struct {
	slots []T // length a power of two, or zero
	head  int
	n     int
}

// Len returns the number of elements.
func (r *Ring[T]) Len() int { return r.n }

// At returns element i, counted from the front.
func (r *Ring[T]) At(i int) *T { return &r.slots[(r.head+i)&(len(r.slots)-1)] }

// Front returns the first element. The ring is not empty.
func (r *Ring[T]) Front() *T { return &r.slots[r.head] }

// Push adds an element at the end and returns its slot, to be filled in.
func (r *Ring[T]) Push() *T {
	if r.n == len(r.slots) {
		slots := make([]T, max(8, 2*len(r.slots)))
		copied := copy(slots, r.slots[r.head:])
		copy(slots[copied:], r.slots[:r.head])
		r.slots, r.head = slots, 0
	}
	r.n++
	return r.At(r.n - 1)
}

// Pop removes and returns the first element. The ring is not empty.
func (r *Ring[T]) Pop() T {
	var none T
	first := r.slots[r.head]
	r.slots[r.head] = none
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	return first
}

// Last keeps the last values of a sequence, oldest first. It grows as it fills.
type Last[T any] struct {
	size  int
	first int // index of the oldest value once the ring is full
	items []T
}

// NewLast returns a Last of up to size values.
func NewLast[T any](size int) *Last[T] { return &Last[T]{size: max(size, 0)} }

// Push adds v and reports whether the oldest value was dropped for it.
func (r *Last[T]) Push(v T) (lost bool) {
	switch {
	case r.size == 0:
		return true
	case len(r.items) < r.size:
		r.items = append(r.items, v)
		return false
	}
	r.items[r.first] = v
	r.first = (r.first + 1) % r.size
	return true
}

// Len returns how many values there are.
func (r *Last[T]) Len() int { return len(r.items) }

// Drop removes the oldest value and returns it. There must be one.
func (r *Last[T]) Drop() T {
	if r.first != 0 {
		r.items, r.first = r.All(), 0
	}
	oldest := r.items[0]
	clear(r.items[:1])
	r.items = r.items[1:]
	return oldest
}

// All returns a copy of the values, oldest first.
func (r *Last[T]) All() []T {
	out := make([]T, 0, len(r.items))
	out = append(out, r.items[r.first:]...)
	return append(out, r.items[:r.first]...)
}

// Backward yields the values, newest first. Do not change the ring meanwhile.
func (r *Last[T]) Backward() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range r.items {
			if !yield(r.items[(r.first+len(r.items)-1-i)%len(r.items)]) {
				return
			}
		}
	}
}

// Take empties the ring and returns its values, oldest first.
func (r *Last[T]) Take() []T {
	if len(r.items) == 0 {
		return nil
	}
	out := r.items
	if r.first != 0 {
		out = r.All()
	}
	r.items, r.first = nil, 0
	return out
}
