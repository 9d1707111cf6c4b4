package p4rt

import (
	"sync"
	"sync/atomic"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// What may wait for clients that do not read their streams, in bytes: streamBytes for one, and outBytes
// for all of a server. A message counts as its payload and messageBytes.
const (
	streamBytes  = 8 << 20
	outBytes     = 64 << 20
	messageBytes = 512
)

// outbox holds the messages that wait to be sent on one stream. Adding one never blocks. It is safe
// for concurrent use.
type outbox struct {
	mu    sync.Mutex
	queue []*p4v1.StreamMessageResponse
	spare []*p4v1.StreamMessageResponse // memory of the previous queue, for reuse
	bytes int64                         // of the queue and of what is being sent
	limit int                           // messages
	all   *atomic.Int64                 // bytes of all outboxes of the server
	full  bool                          // a message that must not be lost did not fit
	last  bool                          // no more messages will come
	done  uint64                        // messages that were sent
	wake  chan struct{}                 // holds one token when there are messages, or full or last is set
}

func newOutbox(limit int, all *atomic.Int64) *outbox {
	return &outbox{limit: limit, all: all, wake: make(chan struct{}, 1)}
}

// offer adds a message with a payload of so many bytes that may be lost. It drops the message and returns
// false when limit/share messages or more wait, or too many bytes for this stream or for all.
func (o *outbox) offer(m *p4v1.StreamMessageResponse, payload, share int) bool {
	size := int64(payload + messageBytes)
	o.mu.Lock()
	ok := !o.last && len(o.queue) < o.limit/share && o.bytes+size <= streamBytes/int64(share) && o.all.Load()+size <= outBytes/int64(share)
	if ok {
		o.add(m, size)
	}
	o.mu.Unlock()
	if ok {
		o.signal()
	}
	return ok
}

// add appends a message; the caller holds mu.
func (o *outbox) add(m *p4v1.StreamMessageResponse, size int64) {
	o.queue = append(o.queue, m)
	o.bytes += size
	o.all.Add(size)
}

// mustSend adds a message without payload that must not be lost. When twice the limit of messages waits
// already, it ends the client's stream instead.
func (o *outbox) mustSend(m *p4v1.StreamMessageResponse) {
	o.mu.Lock()
	switch {
	case o.last:
	case len(o.queue) < 2*o.limit:
		o.add(m, messageBytes)
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

// sent notes that a drained message was sent, and with the last one takes back the bytes of all.
func (o *outbox) sent(last bool, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done++
	if last {
		bytes = min(bytes, o.bytes) // close may have taken them back
		o.bytes -= bytes
		o.all.Add(-bytes)
	}
}

// progress returns how many messages were sent, and whether others wait or are being sent.
func (o *outbox) progress() (done uint64, waiting bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done, o.bytes > 0
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
	o.all.Add(-o.bytes)
	o.bytes = 0
	o.signal() // ends send, where it waits for messages
}
