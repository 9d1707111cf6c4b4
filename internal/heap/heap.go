// Package heap provides a priority queue that tells each element its index, so that elements can be moved
// and removed. Unlike container/heap it is generic and needs no methods of its elements, which may be in
// several heaps.
package heap

// Outside is the index of an element that is in no heap.
const Outside = -1

// Heap is a priority queue. Its owner locks. Elements of equal order are in an arbitrary but
// repeatable order.
type Heap[T any] struct {
	before func(a, b T) bool
	place  func(x T, at int)
	list   []T
}

// New returns an empty heap. place is called with an element's index whenever it changes, and with
// Outside when the element leaves the heap.
func New[T any](before func(a, b T) bool, place func(x T, at int)) Heap[T] {
	return Heap[T]{before: before, place: place}
}

// Len returns the number of elements.
func (h *Heap[T]) Len() int { return len(h.list) }

// First returns the first element. The heap must not be empty.
func (h *Heap[T]) First() T { return h.list[0] }

// Push adds an element.
func (h *Heap[T]) Push(x T) {
	h.list = append(h.list, x)
	h.up(len(h.list)-1, x)
}

// Remove removes the element at an index and returns it.
func (h *Heap[T]) Remove(at int) T {
	x, last := h.list[at], len(h.list)-1
	moved := h.list[last]
	var none T
	h.list[last] = none
	h.list = h.list[:last]
	if at != last {
		h.list[at] = moved
		h.Fix(at)
	}
	h.place(x, Outside)
	return x
}

// Fix restores the order after the element at an index has changed.
func (h *Heap[T]) Fix(at int) {
	if x := h.list[at]; !h.down(at, x) {
		h.up(at, x)
	}
}

// up puts x at a free index or above it.
func (h *Heap[T]) up(at int, x T) {
	for at > 0 {
		parent := (at - 1) / 2
		p := h.list[parent]
		if !h.before(x, p) {
			break
		}
		h.list[at] = p
		h.place(p, at)
		at = parent
	}
	h.list[at] = x
	h.place(x, at)
}

// down puts x at a free index or below it, and reports whether below.
func (h *Heap[T]) down(at int, x T) bool {
	from := at
	for {
		child := 2*at + 1
		if child >= len(h.list) {
			break
		}
		if child+1 < len(h.list) && h.before(h.list[child+1], h.list[child]) {
			child++
		}
		c := h.list[child]
		if !h.before(c, x) {
			break
		}
		h.list[at] = c
		h.place(c, at)
		at = child
	}
	h.list[at] = x
	h.place(x, at)
	return at > from
}
