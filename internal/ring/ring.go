// Package ring provides queues in a ring of memory: Ring is a FIFO that grows, Last keeps the last values
// of a sequence.
package ring

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
