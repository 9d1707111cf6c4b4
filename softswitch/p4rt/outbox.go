package p4rt

import (
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/clients"
)

// streamBytes bounds the bytes that wait for a client that does not read its stream. They also
// count in the server's budget for all clients. A message counts as its payload plus messageBytes.
const (
	streamBytes  = 8 << 20
	messageBytes = 512
)

// outbox holds the messages that wait to be sent on one stream. Adding a message never blocks. Any
// goroutine may use it.
type outbox struct {
	mu     sync.Mutex
	queue  []*p4v1.StreamMessageResponse
	spare  []*p4v1.StreamMessageResponse // memory of the previous queue, for reuse
	bytes  int64                         // of the queue and of the messages being sent
	limit  int                           // most messages in the queue
	budget *clients.Budget               // shared by all outboxes
	full   bool                          // a message that must not be lost did not fit
	last   bool                          // no more messages will come
	wake   chan struct{}                 // holds one token when there are messages, or full or last is set
}

func newOutbox(limit int, budget *clients.Budget) *outbox {
	return &outbox{limit: limit, budget: budget, wake: make(chan struct{}, 1)}
}

// offer adds a message that may be lost. payload is its size in bytes. offer drops the message and
// returns false if limit/share or more messages wait, or if the stream's or the budget's bytes
// would be exceeded.
func (o *outbox) offer(m *p4v1.StreamMessageResponse, payload, share int) bool {
	size := int64(payload + messageBytes)
	o.mu.Lock()
	ok := !o.last && len(o.queue) < o.limit/share && o.bytes+size <= streamBytes/int64(share) && o.budget.Take(size, int64(share))
	if ok {
		o.queue, o.bytes = append(o.queue, m), o.bytes+size
	}
	o.mu.Unlock()
	if ok {
		o.signal()
	}
	return ok
}

// mustSend adds a message without payload that must not be lost. If twice the limit of messages
// waits already, or the budget has no room, it ends the client's stream instead.
func (o *outbox) mustSend(m *p4v1.StreamMessageResponse) {
	o.mu.Lock()
	switch {
	case o.last:
	case len(o.queue) < 2*o.limit && o.budget.Take(messageBytes, 1):
		o.queue, o.bytes = append(o.queue, m), o.bytes+messageBytes
	default:
		o.full = true
	}
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// drain removes and returns all messages and their bytes; the caller passes the bytes to sent
// later. last says that no more messages come, full that the stream must end. The queue is valid
// until the next call.
func (o *outbox) drain() (queue []*p4v1.StreamMessageResponse, bytes int64, last, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.spare)
	queue = o.queue
	o.queue, o.spare = o.spare[:0], queue
	return queue, o.bytes, o.last, o.full
}

// sent releases the bytes of drained messages once all of them were sent.
func (o *outbox) sent(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes = min(bytes, o.bytes) // close may have released them already
	o.bytes -= bytes
	o.budget.Release(bytes)
}

// finish lets the waiting messages be the last ones.
func (o *outbox) finish() {
	o.mu.Lock()
	o.last = true
	o.mu.Unlock()
	o.signal()
}

// close drops the waiting messages and accepts no more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.queue = true, nil
	o.budget.Release(o.bytes)
	o.bytes = 0
	o.signal() // wakes send if it waits for messages
}
