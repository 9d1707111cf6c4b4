// Package slots provides List, a list whose elements keep their addresses when the list grows.
package slots

// chunk is the number of elements in one allocation. It is small, because most lists are short and
// there are many.
const chunk = 8

// List is a list of elements. The zero value is empty.
type List[T any] struct {
	chunks []*[chunk]T
	n      int
}

// Len returns the number of elements.
func (l *List[T]) Len() int { return l.n }

// At returns element i, which must be less than Len. The pointer is valid as long as the list.
func (l *List[T]) At(i int) *T { return &l.chunks[uint(i)/chunk][uint(i)%chunk] }

// Add adds a zero element at the end.
func (l *List[T]) Add() *T {
	if l.n == chunk*len(l.chunks) {
		c := new([chunk]T)
		clear(c[:]) // a new page that is read before it is written costs two page faults
		l.chunks = append(l.chunks, c)
	}
	l.n++
	return l.At(l.n - 1)
}

// All yields all elements in order.
func (l *List[T]) All(yield func(*T) bool) {
	for i := range l.n {
		if !yield(l.At(i)) {
			return
		}
	}
}
