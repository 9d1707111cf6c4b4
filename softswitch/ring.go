package softswitch

// ring is a FIFO that grows to what it needs and stays there.
type ring[T any] struct {
	slots []T // length a power of two, or zero
	head  int
	n     int
}

// push adds an element at the end and returns its slot, to be filled in.
func (r *ring[T]) push() *T {
	if r.n == len(r.slots) {
		slots := make([]T, max(8, 2*len(r.slots)))
		copied := copy(slots, r.slots[r.head:])
		copy(slots[copied:], r.slots[:r.head])
		r.slots, r.head = slots, 0
	}
	r.n++
	return &r.slots[(r.head+r.n-1)&(len(r.slots)-1)]
}

// front returns the first element, nil when there is none.
func (r *ring[T]) front() *T {
	if r.n == 0 {
		return nil
	}
	return &r.slots[r.head]
}

// pop removes the first element. The ring is not empty.
func (r *ring[T]) pop() {
	var none T
	r.slots[r.head] = none
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
}
