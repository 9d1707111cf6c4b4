package outcome

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Pending are the changes that are being made: durable perhaps, and not yet in what the leader answers from.
// A read waits for those that are under way when it begins, as another member may have answered with them
// already. Nil and the zero Pending have none. It is safe for concurrent use.
type Pending struct {
	mu   sync.Mutex
	open map[chan struct{}]struct{}
}

// Begin notes that a change is being made until the returned function is called.
func (p *Pending) Begin() (end func()) {
	if p == nil {
		return func() {}
	}
	c := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[chan struct{}]struct{}{}
	}
	p.open[c] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
		close(c)
	}
}

// Wait waits until the changes have ended that are under way now, or until ctx ends, whose error it returns.
func (p *Pending) Wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range open {
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
