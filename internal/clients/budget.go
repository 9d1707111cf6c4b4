// Package clients bounds the resources that clients of a process use: the bytes that wait for them, their connections
// and their calls. All servers of a process share the Budget named Process.
//
// Bytes are counted from when a message is encoded until it is written to the connection, or its connection is
// gone. A stream whose client reads nothing for Unread ends with RESOURCE_EXHAUSTED; the connection of a client that
// does not read the answer of a call that has ended is closed after the same time.
//
// Messages that have arrived in part are counted too. When they take more than 160 MiB, the connection with the most
// of them is closed.
package clients

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of a process.
const (
	maxBytes = 64 << 20 // bytes that wait for all clients
	maxCalls = 8192     // calls under way; a stream costs some 30 KB
	reserved = 8        // on Unix sockets, root and the process's own user may use 1/reserved of both more
)

// Unread is how long messages may wait for a client that reads nothing.
const Unread = 30 * time.Second

// sweepEvery is the interval of the search for unread messages.
const sweepEvery = Unread / 6

// Process is the budget of this process.
var Process = New(maxBytes)

// Budget bounds the bytes that all clients of some servers use. It is safe for concurrent use.
type Budget struct {
	limit, maxReceiving    int64 // bytes
	used, receiving, calls atomic.Int64

	unread, closed, refused, full atomic.Uint64

	mu       sync.Mutex // guards the fields below
	conns    map[*conn]struct{}
	sweeping bool // a timer runs sweep
	served   map[string]*served
}

// New returns a budget of that many bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, maxReceiving: maxReceiving, conns: map[*conn]struct{}{}, served: map[string]*served{}}
}

// Take takes n bytes, until Release, for something that waits for clients. It reports whether a
// 1/share of the budget had room; otherwise it takes nothing.
func (b *Budget) Take(n, share int64) bool {
	if b.used.Add(n) <= b.limit/share {
		return true
	}
	b.used.Add(-n)
	b.full.Add(1)
	return false
}

// Release gives back bytes of Take.
func (b *Budget) Release(n int64) { b.used.Add(-n) }

// Full is the status of a call for which a budget has no room.
func Full(what string) error {
	return status.Errorf(codes.ResourceExhausted, "%s: messages that wait for clients use all of their memory: try again", what)
}

// Stats is the use of a budget.
type Stats struct {
	Bytes, Limit int64  // bytes that wait, and their limit
	Receiving    int64  // bytes of messages that have arrived in part
	Calls        int64  // calls under way
	Unread       uint64 // streams that ended because their clients did not read them
	Closed       uint64 // connections that were closed because answers were not read, or messages did not arrive whole
	Refused      uint64 // calls that found no room
	Full         uint64 // messages and requests that found no room
	Listeners    []Listener
}

// Listener is the state of the connections of all listeners with one name.
type Listener struct {
	Name    string
	Open    int64
	Refused uint64
}

// Stats returns the use of the budget now.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{
		Bytes: b.used.Load(), Limit: b.limit, Receiving: b.receiving.Load(), Calls: b.calls.Load(),
		Unread: b.unread.Load(), Closed: b.closed.Load(), Refused: b.refused.Load(), Full: b.full.Load(),
	}
	for name, l := range b.served {
		s.Listeners = append(s.Listeners, Listener{name, l.open.Load(), l.refused.Load()})
	}
	slices.SortFunc(s.Listeners, func(a, b Listener) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// add starts sweeping a connection, and remove stops it.
func (b *Budget) add(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[c] = struct{}{}
	if !b.sweeping {
		b.sweeping = true
		time.AfterFunc(sweepEvery, b.sweep)
	}
}

func (b *Budget) remove(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
}

// sweep ends the streams and connections that are not read. It runs as long as there are connections.
func (b *Budget) sweep() {
	b.mu.Lock()
	conns := slices.Collect(maps.Keys(b.conns))
	if b.sweeping = len(conns) > 0; b.sweeping {
		time.AfterFunc(sweepEvery, b.sweep)
	}
	b.mu.Unlock()
	now := time.Now()
	for _, c := range conns {
		if c.endUnread(now) {
			b.closed.Add(1)
			_ = c.Close()
		}
	}
}
