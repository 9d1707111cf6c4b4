// Package events is the controller's event bus. Publishers never wait. Each subscriber has a bounded
// buffer and learns how many events it missed. Start at Bus.
package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/ring"
)

// DefaultBuffer is how many values wait for a slow subscriber before the oldest are dropped.
const DefaultBuffer = 1024

// heldValues and heldBytes bound the values that wait for all subscribers of a bus together. Each subscriber has an
// equal share of both, and at least leastBuffer values; a single value may be larger than the share of bytes.
const (
	heldValues  = 64 << 10
	heldBytes   = 16 << 20
	leastBuffer = 16
)

// ErrClosed is returned by Next once the bus is closed and everything buffered was read.
var ErrClosed = errors.New("the event bus is closed")

// Bus hands every published value to every subscriber. It is safe for concurrent use; mu guards the fields after it.
type Bus[T any] struct {
	size   func(T) int     // bytes of a value; nil where values are small
	cursor func(T, string) // gives a value its cursor; nil where nobody asks for it
	start  string          // distinguishes cursors of this bus from those of others

	mu                 sync.Mutex
	history            *ring.Last[T]
	subs               map[*Subscription[T]]struct{}
	published, dropped uint64
	closed             bool
}

// NewBus returns a bus that remembers the last history values for late subscribers;
// 0 remembers none.
func NewBus[T any](history int) *Bus[T] {
	return &Bus[T]{history: ring.NewLast[T](history), subs: make(map[*Subscription[T]]struct{})}
}

// NewNumberedBus is NewBus for values that get a cursor when they are published. The cursor contains the value's
// number, from 1.
func NewNumberedBus[T any](history int, cursor func(T, string)) *Bus[T] {
	b := NewBus[T](history)
	b.cursor, b.start = cursor, strconv.FormatInt(time.Now().UnixNano(), 36)
	return b
}

// Number returns the number in a cursor, and whether this bus made the cursor; false without an error if another bus
// did.
func (b *Bus[T]) Number(cursor string) (n uint64, ours bool, err error) {
	start, number, _ := strings.Cut(cursor, "-")
	if n, err = strconv.ParseUint(number, 10, 64); err == nil && start == "" {
		err = strconv.ErrSyntax
	}
	return n, start == b.start, err
}

// NewSizedBus returns a bus of values of any size, which remembers none.
func NewSizedBus[T any](size func(T) int) *Bus[T] {
	b := NewBus[T](0)
	b.size = size
	return b
}

// bytes returns the size of a value.
func (b *Bus[T]) bytes(v T) int {
	if b.size == nil {
		return 0
	}
	return b.size(v)
}

// Publish hands v to every subscriber. It never waits: where a subscriber's buffer is full
// its oldest value is dropped and counted. After Close it does nothing.
func (b *Bus[T]) Publish(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.published++
	if b.cursor != nil {
		b.cursor(v, fmt.Sprintf("%s-%d", b.start, b.published))
	}
	b.history.Push(v)
	subs := max(len(b.subs), 1)
	share, size := max(leastBuffer, heldValues/subs), b.bytes(v)
	for s := range b.subs {
		b.dropped += s.push(v, share, size, heldBytes/subs)
	}
}

// Options says how to subscribe.
type Options[T any] struct {
	Buffer int          // values that may wait, at least 1; 0 means DefaultBuffer
	Recent int          // how many remembered values to start with, at most Buffer are kept
	After  uint64       // remembered values must have a larger number; missing ones in between count as dropped
	Match  func(T) bool // values to receive; nil means all. Called under the bus's lock.
}

// Recent returns the last n remembered values that match, oldest first.
func (b *Bus[T]) Recent(n int, match func(T) bool) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.recent(n, 0, match)
}

func (b *Bus[T]) recent(n int, after uint64, match func(T) bool) []T {
	if n <= 0 {
		return nil
	}
	var list []T
	first := b.published - uint64(b.history.Len()) + 1
	for i, v := range b.history.All() {
		if first+uint64(i) > after && (match == nil || match(v)) {
			list = append(list, v)
		}
	}
	return list[max(0, len(list)-n):]
}

// Subscribe starts to follow the bus. The caller must Close the subscription.
func (b *Bus[T]) Subscribe(o Options[T]) *Subscription[T] {
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	s := &Subscription[T]{bus: b, match: o.Match, limit: o.Buffer, buf: ring.NewLast[T](o.Buffer), ready: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	recent := b.recent(min(o.Recent, o.Buffer), o.After, o.Match)
	for _, v := range recent {
		s.push(v, DefaultBuffer, b.bytes(v), heldBytes)
	}
	if o.After > 0 && o.Match == nil && b.published > o.After {
		s.dropped = b.published - o.After - uint64(len(recent))
		b.dropped += s.dropped
	}
	if b.closed {
		s.close()
	} else {
		b.subs[s] = struct{}{}
	}
	return s
}

// Close ends every subscription; values already buffered can still be read.
func (b *Bus[T]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for s := range b.subs {
		s.close()
	}
	clear(b.subs)
}

// Stats counts the values that went through a bus since it was made.
type Stats struct {
	Published   uint64 // values
	Dropped     uint64 // values times subscribers that missed them
	Subscribers int
}

// Stats returns the bus's counters.
func (b *Bus[T]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Published: b.published, Dropped: b.dropped, Subscribers: len(b.subs)}
}

// Subscription is one follower of a bus. It owns its buffer, under mu; one goroutine reads.
type Subscription[T any] struct {
	bus   *Bus[T]
	match func(T) bool
	limit int           // values that may wait
	ready chan struct{} // holds a token when there may be something to read

	mu      sync.Mutex
	buf     *ring.Last[T]
	bytes   int    // size of the values that wait
	dropped uint64 // since the last Next
	closed  bool
}

// Next waits for values and returns all that are buffered, oldest first, with the number of
// older ones that were dropped since the last call. It ends with the context's error, or
// ErrClosed.
func (s *Subscription[T]) Next(ctx context.Context) (values []T, dropped uint64, err error) {
	for {
		values, dropped, closed := s.take()
		switch {
		case len(values) > 0:
			return values, dropped, nil
		case closed:
			return nil, 0, ErrClosed
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-s.ready:
		}
	}
}

// Take is Next without waiting: it may return no values.
func (s *Subscription[T]) Take() (values []T, dropped uint64) {
	values, dropped, _ = s.take()
	return values, dropped
}

func (s *Subscription[T]) take() (values []T, dropped uint64, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values, dropped, s.dropped, s.bytes = s.buf.Take(), s.dropped, 0, 0
	return values, dropped, s.closed
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription[T]) Close() {
	s.bus.mu.Lock()
	delete(s.bus.subs, s)
	s.bus.mu.Unlock()
	s.close()
}

// push adds a value of the given size. It returns how many older ones were dropped, so that no more than the share of
// values and bytes waits.
func (s *Subscription[T]) push(v T, share, size, bytes int) (dropped uint64) {
	if s.match != nil && !s.match(v) {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; s.buf.Len() >= min(share, s.limit) || s.buf.Len() > 0 && s.bytes+size > bytes; dropped++ {
		s.bytes -= s.bus.bytes(s.buf.Drop())
	}
	s.buf.Push(v)
	s.bytes += size
	s.dropped += dropped
	s.wake()
	return dropped
}

func (s *Subscription[T]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wake()
}

func (s *Subscription[T]) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
