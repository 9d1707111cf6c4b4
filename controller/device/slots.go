package device

import (
	"context"
	"sync"
)

// Slots bound how many switches are read in full at one time, whatever for: each takes memory for all
// its entries meanwhile, and all of them together would take it for a whole fabric's.
type Slots struct {
	mu   sync.Mutex
	free chan struct{}
}

// NewSlots returns n slots.
func NewSlots(n int) *Slots {
	s := &Slots{}
	s.Resize(n)
	return s
}

// Resize changes their number. Slots that are taken already do not count.
func (s *Slots) Resize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(s.free) != n {
		s.free = make(chan struct{}, n)
	}
}

// Take waits for a slot, which give returns; the error is that of the context. nil has a slot for everyone.
func (s *Slots) Take(ctx context.Context) (give func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	s.mu.Lock()
	c := s.free
	s.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
