package p4rt

import (
	"errors"
	"io"
	"slices"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
	"github.com/headgate/headgate/softswitch/p4rt/wire"
)

type channel = p4v1.P4Runtime_StreamChannelServer

var (
	errClosing = status.Error(codes.Unavailable, "the P4Runtime server is shutting down")
	errSlow    = status.Error(codes.ResourceExhausted, "the client does not read its stream")
)

// echoBytes bounds the payload of a refused packet-out that its error repeats.
const echoBytes = 256

// StreamChannel runs one client's session. One goroutine receives, another one sends. The receiver
// ends the session when the client closes the stream or an error occurs.
func (s *Server) StreamChannel(stream channel) error {
	box := newOutbox(s.opts.StreamQueue, s.opts.Budget)
	c, ok := s.connect(box)
	if !ok {
		return errClosing
	}
	defer box.close()
	received, sent := make(chan error, 1), make(chan error, 1)
	go func() {
		err := s.receive(stream, c, box)
		s.disconnect(c)
		received <- err
	}()
	go func() { sent <- send(stream, box) }() // ends when the stream ends
	var end error
	for {
		select {
		case err := <-sent:
			if end != nil {
				return end
			}
			return err
		case end = <-received:
			box.finish()
		case <-s.closing:
			return errClosing
		}
	}
}

func send(stream channel, box *outbox) error {
	for range box.wake {
		queue, bytes, last, full := box.drain()
		for _, m := range queue {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		box.sent(bytes)
		switch {
		case full:
			return errSlow
		case last:
			return nil
		}
	}
	return nil
}

// connect registers a new stream and returns its number. It returns false if the server is
// closing.
func (s *Server) connect(box *outbox) (arbitration.Client, bool) {
	s.arbMu.Lock()
	defer s.arbMu.Unlock()
	select {
	case <-s.closing:
		return 0, false
	default:
	}
	s.nextID++
	s.streams[s.nextID] = box
	return s.nextID, true
}

// disconnect removes a stream. It is called once for every stream.
func (s *Server) disconnect(c arbitration.Client) {
	s.arbitrating.Lock()
	defer s.arbitrating.Unlock()
	s.arbMu.Lock()
	out := s.arb.Disconnect(c)
	delete(s.streams, c)
	s.updatePrimaries()
	s.arbMu.Unlock()
	s.notify(out)
}

// receive handles the client's messages until the stream ends. It returns nil when the client closed
// the stream.
func (s *Server) receive(stream channel, c arbitration.Client, box *outbox) error {
	for {
		m := &wire.StreamRequest{}
		err := stream.RecvMsg(m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Size > wire.MaxStreamRequest:
			return status.Errorf(codes.ResourceExhausted, "a stream message has %d bytes, want at most %d", m.Size, wire.MaxStreamRequest)
		}
		switch u := m.Update.(type) {
		case *p4v1.StreamMessageRequest_Arbitration:
			if err := s.arbitrate(c, u.Arbitration); err != nil {
				s.log.Info("arbitration refused", "client", c, "error", err)
				return err
			}
		case *p4v1.StreamMessageRequest_Packet:
			if err := s.packetOut(c, u.Packet); err != nil {
				if p := u.Packet; len(p.GetPayload()) > echoBytes {
					p.Payload = append([]byte(nil), p.Payload[:echoBytes]...) // the client has the rest
				}
				s.reject(box, err, &p4v1.StreamError{Details: &p4v1.StreamError_PacketOut{PacketOut: &p4v1.PacketOutError{PacketOut: u.Packet}}})
			}
		case *p4v1.StreamMessageRequest_DigestAck:
			s.reject(box, s.digestAck(c, u.DigestAck), &p4v1.StreamError{
				Details: &p4v1.StreamError_DigestListAck{DigestListAck: &p4v1.DigestListAckError{DigestListAck: u.DigestAck}},
			})
		default:
			s.reject(box, status.Errorf(codes.Unimplemented, "stream message %T is not supported", m.Update), &p4v1.StreamError{
				Details: &p4v1.StreamError_Other{Other: &p4v1.StreamOtherError{Other: m.GetOther()}},
			})
		}
	}
}

// reject sends a StreamError if err is not nil. Errors to a slow client are dropped before other
// messages.
func (s *Server) reject(box *outbox, err error, e *p4v1.StreamError) {
	if err == nil {
		return
	}
	e.CanonicalCode, e.Message, e.Space = int32(status.Code(err)), status.Convert(err).Message(), errorSpace
	if !box.offer(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Error{Error: e}}, proto.Size(e), 2) {
		s.stats.streamError.Add(1)
	}
}

func (s *Server) arbitrate(c arbitration.Client, m *p4v1.MasterArbitrationUpdate) error {
	s.arbitrating.Lock()
	defer s.arbitrating.Unlock()
	s.arbMu.Lock()
	out, err := s.arb.Update(c, m)
	s.updatePrimaries()
	s.arbMu.Unlock()
	if err == nil {
		s.log.Info("arbitration", "client", c, "role", m.GetRole().GetName(), "election_id", m.GetElectionId().String(), "primary", slices.ContainsFunc(out, func(n arbitration.Notification) bool { return n.Primary }))
		s.notify(out)
	}
	return err
}

// notify sends arbitration messages. The new primary's message is sent after the write in progress;
// later writes check arbitration themselves. The caller holds arbitrating, so that clients see
// outcomes in order.
func (s *Server) notify(notes []arbitration.Notification) {
	for _, n := range notes {
		if n.Primary {
			s.mu.RLock()
			s.mu.RUnlock() //lint:ignore SA2001 waits for the writer
		}
		s.arbMu.Lock()
		box := s.streams[n.To]
		s.arbMu.Unlock()
		if box != nil {
			box.mustSend(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: n.Update}})
		}
	}
}

type listener struct {
	box   *outbox
	scope *scope
}

// updatePrimaries recomputes scopes and listeners. The caller holds arbMu.
func (s *Server) updatePrimaries() {
	list := []listener{}
	s.arb.Primaries(func(key arbitration.RoleKey, c arbitration.Client) {
		// The configuration parses: Update has refused all others.
		sc, _ := parseScope(s.arb.Config(key))
		s.scopes[key] = sc
		list = append(list, listener{s.streams[c], sc})
	})
	s.listeners.Store(&list)
}

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
	bytes  int64                         // size of the queue and of the messages being sent
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

// sent releases the bytes of drained messages. Call it when all of these have been sent.
func (o *outbox) sent(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes = min(bytes, o.bytes) // close may have released them already
	o.bytes -= bytes
	o.budget.Release(bytes)
}

// finish ends the queue: no message is sent after those that wait now.
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
