package target

import (
	"slices"
	"sync"
	"time"
)

// Inbox keeps the frames that left a switch, in order, until a test asks for them. The
// zero value is empty. Its methods may be called from any goroutine.
type Inbox struct {
	mu     sync.Mutex
	frames []Frame
	change chan struct{} // closed and replaced by Put; nil while nobody waits
}

// Put adds a frame, whose bytes now belong to the inbox.
func (b *Inbox) Put(port uint32, frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames = append(b.frames, Frame{port, frame})
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
}

// Take removes the first frame that left the port, or any port, waiting for it for at most
// wait.
func (b *Inbox) Take(port uint32, wait time.Duration) (Frame, bool) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		frame, change := b.take(port)
		if change == nil {
			return frame, true
		}
		select {
		case <-change:
		case <-deadline.C:
			return Frame{}, false
		}
	}
}

// take returns a frame, or else a channel that is closed when there is a new one.
func (b *Inbox) take(port uint32) (Frame, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, f := range b.frames {
		if port == Any || f.Port == port {
			b.frames = slices.Delete(b.frames, i, i+1)
			return f, nil
		}
	}
	if b.change == nil {
		b.change = make(chan struct{})
	}
	return Frame{}, b.change
}
