package p4rt

import (
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/clients"
)

// streamBytes is what may wait for a client that does not read its stream, of what the server's budget has for all. A
// message counts as its payload and messageBytes.
const (
	streamBytes  = 8 << 20
	messageBytes = 512
)

// outbox holds the messages that wait to be sent on one stream. Adding one never blocks. It is safe
// for concurrent use.
type outbox struct {
	mu     sync.Mutex
	queue  []*p4v1.StreamMessageResponse
	spare  []*p4v1.StreamMessageResponse // memory of the previous queue, for reuse
	bytes  int64                         // of the queue and of what is being sent
	limit  int                           // messages
	budget *clients.Budget               // of all outboxes
	full   bool                          // a message that must not be lost did not fit
	last   bool                          // no more messages will come
	wake   chan struct{}                 // holds one token when there are messages, or full or last is set
}

func newOutbox(limit int, budget *clients.Budget) *outbox {
	return &outbox{limit: limit, budget: budget, wake: make(chan struct{}, 1)}
}

// offer adds a message with a payload of so many bytes that may be lost. It drops the message and returns
// false when limit/share messages or more wait, or too many bytes for this stream or for all.
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

// mustSend adds a message without payload that must not be lost. When twice the limit of messages waits
// already, or there is no room in the budget, it ends the client's stream instead.
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

// drain removes and returns all messages, and their bytes, which sent takes back. last says that no more
// come, full that the stream must end. The queue is valid until the next call.
func (o *outbox) drain() (queue []*p4v1.StreamMessageResponse, bytes int64, last, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.spare)
	queue = o.queue
	o.queue, o.spare = o.spare[:0], queue
	return queue, o.bytes, o.last, o.full
}

// sent takes back the bytes of what was drained, when all of it was sent.
func (o *outbox) sent(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes = min(bytes, o.bytes) // close may have taken them back
	o.bytes -= bytes
	o.budget.Release(bytes)
}

// finish makes the messages that wait the last ones.
func (o *outbox) finish() {
	o.mu.Lock()
	o.last = true
	o.mu.Unlock()
	o.signal()
}

// close drops what waits. No message comes after it.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.queue = true, nil
	o.budget.Release(o.bytes)
	o.bytes = 0
	o.signal() // ends send, where it waits for messages
}
