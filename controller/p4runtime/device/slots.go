package device

import (
	"context"
	"sync"
	"time"
)

// Slots bound how many switches are read in full at one time, whatever for: each takes memory for all
// its entries meanwhile, and all of them together would take it for a whole fabric's. Periodic comparisons
// of switches that are in line have a single slot, which rests after each: so they take a share of the
// time, and more of it with more switches and entries. nil has a slot for everyone at any time.
type Slots struct {
	mu   sync.Mutex
	free chan struct{}
	calm chan struct{} // of periodic comparisons
}

// After a periodic comparison the slot rests for rest times as long, but no longer than restMost: a
// switch that did not answer says nothing of the others.
const (
	rest     = 9
	restMost = 10 * time.Second
)

// NewSlots returns n slots.
func NewSlots(n int) *Slots {
	s := &Slots{calm: make(chan struct{}, 1)}
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

// Take waits for a slot, which give returns; the error is that of the context.
func (s *Slots) Take(ctx context.Context) (give func(), err error) {
	sl := s.slot(false)
	select {
	case sl.take() <- struct{}{}:
		return sl.taken(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// slot is one that somebody waits for; nil is never there.
type slot struct {
	c    chan struct{}
	calm bool
}

// slot returns what to wait for; periodic says that a switch in line is looked at again.
func (s *Slots) slot(periodic bool) *slot {
	switch {
	case s == nil:
		return &slot{c: make(chan struct{}, 1)}
	case periodic:
		return &slot{s.calm, true}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &slot{c: s.free}
}

// take returns where the slot is taken by sending.
func (s *slot) take() chan<- struct{} {
	if s == nil {
		return nil
	}
	return s.c
}

// taken returns what gives the slot back.
func (s *slot) taken() (give func()) {
	if !s.calm {
		return func() { <-s.c }
	}
	began := time.Now()
	return func() { time.AfterFunc(min(rest*time.Since(began), restMost), func() { <-s.c }) }
}
