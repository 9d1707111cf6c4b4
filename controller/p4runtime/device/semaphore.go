package device

import (
	"context"
	"sync"
	"time"
)

// ReadSemaphore bounds how many switches are read in full at one time, whatever for: each takes memory for
// all its entries meanwhile, and all of them together would take it for a whole fabric's. Periodic
// comparisons of switches that are in line have a single place of their own, which rests after each: so
// they take a share of the time, and more of it with more switches and entries. nil bounds nothing.
//
// It is made of channels, since the reconciler waits for it and for changes at once.
type ReadSemaphore struct {
	mu       sync.Mutex
	places   chan struct{}
	periodic chan struct{}
}

// After a periodic comparison its place rests for restFactor times as long, but no longer than restMax: a
// switch that did not answer says nothing of the others.
const (
	restFactor = 99
	restMax    = 10 * time.Second
)

// NewReadSemaphore returns a semaphore with n places.
func NewReadSemaphore(n int) *ReadSemaphore {
	s := &ReadSemaphore{periodic: make(chan struct{}, 1)}
	s.Resize(n)
	return s
}

// Resize changes the number of places. Those that are taken already do not count.
func (s *ReadSemaphore) Resize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(s.places) != n {
		s.places = make(chan struct{}, n)
	}
}

// Acquire waits for a place, which release gives back; the error is that of the context.
func (s *ReadSemaphore) Acquire(ctx context.Context) (release func(), err error) {
	c := s.queue(false)
	select {
	case c <- struct{}{}:
		return s.acquired(c), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// queue returns the channel that a place is acquired by sending to; periodic says that a switch in line
// is compared again.
func (s *ReadSemaphore) queue(periodic bool) chan struct{} {
	switch {
	case s == nil:
		return make(chan struct{}, 1)
	case periodic:
		return s.periodic
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places
}

func (s *ReadSemaphore) isPeriodic(c chan struct{}) bool { return s != nil && c == s.periodic }

// acquired returns the function that gives back the place just acquired.
func (s *ReadSemaphore) acquired(c chan struct{}) (release func()) {
	if !s.isPeriodic(c) {
		return func() { <-c }
	}
	began := time.Now()
	return func() { time.AfterFunc(min(restFactor*time.Since(began), restMax), func() { <-c }) }
}
