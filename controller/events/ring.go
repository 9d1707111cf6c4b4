package events

// ring holds the last size values; it grows as it fills.
type ring[T any] struct {
	size  int
	first int // index of the oldest value once the ring is full
	items []T
}

func newRing[T any](size int) *ring[T] { return &ring[T]{size: max(size, 0)} }

// push adds v and reports whether the oldest value was lost for it.
func (r *ring[T]) push(v T) (lost bool) {
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

// all returns a copy of the values, oldest first.
func (r *ring[T]) all() []T {
	out := make([]T, 0, len(r.items))
	out = append(out, r.items[r.first:]...)
	return append(out, r.items[:r.first]...)
}

// take empties the ring and returns what it held, oldest first.
func (r *ring[T]) take() []T {
	if len(r.items) == 0 {
		return nil
	}
	out := r.items
	if r.first != 0 {
		out = r.all()
	}
	r.items, r.first = nil, 0
	return out
}
