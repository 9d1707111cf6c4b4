package device

import (
	"context"
	"sync"
	"time"
)

// ReadSemaphore bounds how many switches are read in full at one time, because each read takes memory for all entries
// of the switch. Periodic comparisons of switches whose last reconciliation succeeded share a single place. It rests
// after each comparison, so that comparisons take only a fraction of the time. A nil ReadSemaphore bounds nothing.
//
// It consists of channels, because the reconciler waits for a place and for changes in one select.
type ReadSemaphore struct {
	mu       sync.Mutex
	places   chan struct{}
	periodic chan struct{}
}

// After a periodic comparison its place rests for restFactor times as long, but no longer than restMax: a switch that
// did not answer must not delay the others.
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

// Resize changes the number of places. Places taken before do not count.
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

// queue returns a channel; sending to it acquires a place. periodic is for a repeated comparison of a switch
// whose last reconciliation succeeded.
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
