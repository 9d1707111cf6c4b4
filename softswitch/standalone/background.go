package standalone

import (
	"io"
	"log/slog"
	"sync"
	"time"
)

// backlog bounds the bytes that wait to be written. closePatience bounds the wait for them at the
// end, because nobody may read a terminal or a pipe any more.
const (
	backlog       = 1 << 20
	closePatience = time.Second
)

// background is the output of the log. It writes the lines on a goroutine of its own, because the
// switch logs while it holds its lock, and a terminal, a pipe or a disk may be slow. Lines that come
// while the backlog is full are lost. The log says how many.
type background struct {
	out   io.Writer
	more  chan struct{} // has a value if there are lines to write
	ended chan struct{}

	mu      sync.Mutex
	waiting []byte
	lost    int
	closed  bool
}

func newBackground(out io.Writer) *background {
	return &background{out: out, more: make(chan struct{}, 1), ended: make(chan struct{})}
}

// start starts to write. log is the log whose output b is. It says how many lines were lost.
func (b *background) start(log *slog.Logger) {
	go func() {
		defer close(b.ended)
		var lines []byte
		for range b.more {
			b.mu.Lock()
			lines, b.waiting = b.waiting, lines[:0]
			lost, closed := b.lost, b.closed
			b.lost = 0
			b.mu.Unlock()
			if len(lines) > 0 {
				_, _ = b.out.Write(lines) // a log has nowhere to report its own errors
			}
			if lost > 0 {
				log.Warn("lines of the log were lost: its output is slow", "lines", lost)
			} else if closed {
				return
			}
		}
	}()
}

// Write takes one line. It never waits and never fails.
func (b *background) Write(line []byte) (int, error) {
	b.mu.Lock()
	if len(b.waiting)+len(line) > backlog {
		b.lost++
	} else {
		b.waiting = append(b.waiting, line...)
	}
	b.mu.Unlock()
	b.wake()
	return len(line), nil
}

func (b *background) wake() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// behind reports whether half of the backlog is full. The other half is reserved for lines other than those about
// packets' paths, which are far more frequent.
func (b *background) behind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > backlog/2
}

// close writes the lines that wait, for at most closePatience.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
	select {
	case <-b.ended:
	case <-time.After(closePatience):
	}
}
