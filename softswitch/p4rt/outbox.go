package p4rt

import (
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// outbox holds the messages that wait to be sent on one stream. Adding one never blocks. It is safe
// for concurrent use.
type outbox struct {
	mu    sync.Mutex
	queue []*p4v1.StreamMessageResponse
	spare []*p4v1.StreamMessageResponse // memory of the previous queue, for reuse
	limit int
	full  bool          // a message that must not be lost did not fit
	wake  chan struct{} // holds one token when there are messages or full is set
}

func newOutbox(limit int) *outbox { return &outbox{limit: limit, wake: make(chan struct{}, 1)} }

// offer adds a message that may be lost. It drops the message and returns false when limit/share
// messages or more wait.
func (o *outbox) offer(m *p4v1.StreamMessageResponse, share int) bool {
	o.mu.Lock()
	ok := len(o.queue) < o.limit/share
	if ok {
		o.queue = append(o.queue, m)
	}
	o.mu.Unlock()
	if ok {
		o.signal()
	}
	return ok
}

// mustSend adds a message that must not be lost. When twice the limit of messages waits already, it
// ends the client's stream instead.
func (o *outbox) mustSend(m *p4v1.StreamMessageResponse) {
	o.mu.Lock()
	if len(o.queue) < 2*o.limit {
		o.queue = append(o.queue, m)
	} else {
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

// drain removes and returns all messages. ok is false when the stream must end. The result is valid
// until the next call.
func (o *outbox) drain() (queue []*p4v1.StreamMessageResponse, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.spare)
	queue = o.queue
	o.queue, o.spare = o.spare[:0], queue
	return queue, !o.full
}
