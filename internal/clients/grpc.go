package clients

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	_ "google.golang.org/grpc/encoding/proto" // registers the default codec
)

// handshake bounds the time of a client's TLS handshake and HTTP/2 preface.
const handshake = 10 * time.Second

// ServerOptions keep a gRPC server within a budget. Put them first among its options, because their
// interceptors must be the outermost. codec encodes messages; nil means protobuf. Without creds the server speaks
// plain text. Connections are closed and counted if the server's listener is one of Limit.
func ServerOptions(b *Budget, codec encoding.CodecV2, creds credentials.TransportCredentials) []grpc.ServerOption {
	if codec == nil {
		codec = encoding.GetCodecV2("proto")
	}
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	stream := func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return b.stream(srv, s, counting{codec}, handler)
	}
	return []grpc.ServerOption{
		grpc.Creds(counted{creds}), grpc.StaticConnWindowSize(connWindow), grpc.StaticStreamWindowSize(streamWindow),
		grpc.ConnectionTimeout(handshake),
		grpc.ForceServerCodecV2(counting{codec}),
		grpc.ChainUnaryInterceptor(b.unary),
		grpc.ChainStreamInterceptor(stream),
	}
}

var errUnread = status.Errorf(codes.ResourceExhausted, "the client did not read its stream for %v while messages waited", Unread)

// call is a call that is running or whose last messages wait. The connection's lock guards it.
type call struct {
	conn    *conn
	waiting int64     // bytes
	taken   time.Time // when the client took a message last, or the call began or ended
	live    bool      // a stream whose handler runs
	unread  chan struct{}
	flushed chan struct{} // receives a token when fewer bytes wait
}

// begin counts a call.
func (b *Budget) begin(ctx context.Context) (*call, error) {
	c := &call{taken: time.Now(), flushed: make(chan struct{}, 1)}
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(addr); ok {
			c.conn = a.conn
		}
	}
	if c.conn == nil {
		c.conn = &conn{budget: b}
	}
	if b.calls.Add(1) > c.conn.share(maxCalls) {
		b.calls.Add(-1)
		b.refused.Add(1)
		return nil, status.Errorf(codes.ResourceExhausted, "%d calls are under way, which is the limit: try again", maxCalls)
	}
	if b.used.Load() > c.conn.share(b.limit) {
		b.calls.Add(-1)
		b.refused.Add(1)
		return nil, Full("call")
	}
	return c, nil
}

// share adds the part that is reserved for the owner of a Unix socket.
func (c *conn) share(limit int64) int64 {
	if c.owner {
		return limit + limit/reserved
	}
	return limit
}

func (b *Budget) unary(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer b.calls.Add(-1)
	if m, ok := r.(proto.Message); ok { // a request takes room until it is answered
		n := int64(proto.Size(m))
		if used := b.used.Add(n); used > max(n, c.conn.share(b.limit)) { // a single request may exceed the limit
			b.used.Add(-n)
			b.refused.Add(1)
			return nil, Full("call")
		}
		defer b.used.Add(-n)
	}
	answer, err := handler(ctx, r)
	if err != nil {
		return nil, err
	}
	if c.conn.Conn == nil {
		return answer, nil
	}
	return &message{m: answer, call: c}, nil
}

func (b *Budget) stream(srv any, s grpc.ServerStream, codec counting, handler grpc.StreamHandler) error {
	c, err := b.begin(s.Context())
	if err != nil {
		return err
	}
	c.live, c.unread = true, make(chan struct{})
	if c.conn.Conn == nil {
		b.add(c.conn)
		defer c.conn.Close()
	}
	done := make(chan error, 1)
	go func() {
		defer b.calls.Add(-1)
		done <- handler(srv, &serverStream{s, c, codec})
	}()
	select {
	case err := <-done:
		c.conn.mu.Lock()
		defer c.conn.mu.Unlock()
		c.end(time.Now())
		return err
	case <-c.unread:
		return errUnread // also ends the handler's Send and its context
	}
}

// end records that the call has ended.
func (c *call) end(now time.Time) { c.live, c.taken = false, now }

// serverStream sends messages that are counted.
type serverStream struct {
	grpc.ServerStream
	call  *call
	codec counting
}

// SendMsg implements grpc.ServerStream. It waits where gRPC does not: when much of the budget is used,
// a stream may have one waiting message, which is encoded because it is smaller in that form.
func (s *serverStream) SendMsg(m any) error {
	b, w := s.call.conn.budget, &message{m: m, call: s.call}
	m = nil
	switch used, waiting := b.used.Load(), s.call.waits(0); {
	case !waiting && used > s.call.conn.share(b.limit):
		b.full.Add(1)
		return Full("stream")
	case !waiting || used <= b.limit/2:
		return s.ServerStream.SendMsg(w)
	}
	var err error
	if w.encoded, err = s.codec.Marshal(w); err != nil {
		return err
	}
	own := int64(0)
	for _, e := range w.encoded {
		own += int64(cap(e.ReadOnlyData()))
	}
	for s.call.waits(own) && b.used.Load() > b.limit/2 {
		select {
		case <-s.call.flushed:
		case <-s.Context().Done():
			w.encoded.Free()
			return status.FromContextError(s.Context().Err()).Err()
		}
	}
	return s.ServerStream.SendMsg(w)
}

// waits reports whether more than that many bytes wait.
func (c *call) waits(own int64) bool {
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	return c.waiting > own
}

// message is a message that counts for a call from its encoding on.
type message struct {
	m       any
	encoded mem.BufferSlice // the encoded message; m is nil then
	call    *call
}

// counting is a codec that counts messages.
type counting struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (c counting) Marshal(v any) (mem.BufferSlice, error) {
	w, ok := v.(*message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	if w.encoded != nil {
		return w.encoded, nil
	}
	buffers, err := c.CodecV2.Marshal(w.m)
	if w.m = nil; err != nil { // gRPC holds v until the message is sent
		return nil, err
	}
	for i, b := range buffers {
		if b.Len() > 0 {
			buffers[i] = w.call.add(b)
		}
	}
	return buffers, nil
}

// out is encoded bytes that wait.
type out struct {
	mem.SliceBuffer
	of         mem.Buffer
	call       *call
	refs       atomic.Int32
	since      time.Time
	prev, next *out
}

// add counts a buffer until it is free.
func (c *call) add(of mem.Buffer) *out {
	o := &out{SliceBuffer: of.ReadOnlyData(), of: of, call: c, since: time.Now()}
	o.refs.Store(1)
	conn, n := c.conn, int64(cap(o.SliceBuffer))
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.closed {
		return o
	}
	conn.budget.used.Add(n)
	conn.waiting += n
	c.waiting += n
	if o.prev = conn.last; o.prev != nil {
		o.prev.next = o
	} else {
		conn.first = o
	}
	conn.last = o
	return o
}

// Ref implements mem.Buffer.
func (o *out) Ref() { o.refs.Add(1) }

// Free implements mem.Buffer.
func (o *out) Free() {
	if o.refs.Add(-1) > 0 {
		return
	}
	o.call.remove(o, int64(cap(o.SliceBuffer)))
	o.of.Free()
}

// remove undoes add.
func (c *call) remove(o *out, n int64) {
	conn := c.conn
	conn.mu.Lock()
	defer conn.mu.Unlock()
	c.taken = time.Now()
	c.waiting -= n
	select {
	case c.flushed <- struct{}{}:
	default:
	}
	if conn.closed {
		return
	}
	conn.budget.used.Add(-n)
	conn.waiting -= n
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		conn.first = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		conn.last = o.prev
	}
}
