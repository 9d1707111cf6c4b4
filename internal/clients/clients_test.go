package clients

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const messageBytes = 12 << 10

// endless is a service with an endless stream and a call with a large answer.
var endless = grpc.ServiceDesc{
	ServiceName: "Endless", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Get", Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		in := &wrapperspb.BytesValue{}
		if err := decode(in); err != nil {
			return nil, err
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) {
			return wrapperspb.Bytes(make([]byte, 1<<20)), nil
		})
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
		for {
			if err := s.SendMsg(wrapperspb.Bytes(make([]byte, messageBytes))); err != nil {
				return err
			}
		}
	}}},
}

// serve serves endless, and returns a function that opens connections.
func serve(t *testing.T, b *Budget) func() *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	s := grpc.NewServer(ServerOptions(b, nil, nil)...)
	s.RegisterService(&endless, nil)
	go s.Serve(Limit(l, Options{Name: "test", Budget: b})) //nolint:errcheck // ends with Stop
	t.Cleanup(s.Stop)
	return func() *grpc.ClientConn {
		conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithInitialWindowSize(1<<16), // else it grows, and the client keeps the messages
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

func watch(t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	s, err := conn.NewStream(t.Context(), &endless.Streams[0], "/Endless/Watch")
	if err == nil {
		err = s.SendMsg(&wrapperspb.BytesValue{})
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUnreadStreams: clients that do not read their streams use no more memory than the budget. Others are served
// meanwhile, the streams end with RESOURCE_EXHAUSTED, and connections that read nothing are closed.
func TestUnreadStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 6 << 20
		b := New(limit)
		dial := serve(t, b)
		var unread []grpc.ClientStream
		for range 4 {
			conn := dial()
			for range 25 {
				unread = append(unread, watch(t, conn))
			}
		}
		reader := watch(t, dial())
		synctest.Wait()
		for range 1000 {
			if err := reader.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
				t.Fatal(err)
			}
		}
		s := b.Stats()
		if s.Bytes > limit || s.Bytes < limit/4 || s.Calls != 101 || s.Unread != 0 || s.Refused != 0 {
			t.Errorf("%+v", s)
		}
		_ = watch(t, dial()) // which are not read either
		time.Sleep(Unread + 2*sweepEvery)
		if s = b.Stats(); s.Calls != 0 || s.Unread < 101 || s.Closed != 0 {
			t.Errorf("unread for %v: %+v", Unread, s)
		}
		for range 2 {
			if err := drain(unread[0]); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("an unread stream ended with %v", err)
			}
			unread = unread[25:]
		}
		time.Sleep(Unread + 2*sweepEvery)
		if s = b.Stats(); s.Closed < 2 || s.Bytes != 0 {
			t.Errorf("after %v more: %+v", Unread, s)
		}
		if err := drain(unread[0]); status.Code(err) != codes.Unavailable {
			t.Errorf("a stream of a connection that was closed ended with %v", err)
		}
	})
}

// drain reads a stream to its end.
func drain(s grpc.ClientStream) error {
	for {
		if err := s.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
			return err
		}
	}
}

// TestUnreadAnswers: unread answers count as well, and calls are refused while there is no room.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8 << 20
		b := New(limit)
		dial := serve(t, b)
		deaf := grpc.StreamDesc{ServerStreams: true} // a call with one answer, which the client does not read
		conn := dial()
		for range 20 {
			s, err := conn.NewStream(t.Context(), &deaf, "/Endless/Get")
			if err == nil {
				err = s.SendMsg(&wrapperspb.BytesValue{})
			}
			if err == nil {
				err = s.CloseSend()
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		err := dial().Invoke(t.Context(), "/Endless/Get", &wrapperspb.BytesValue{}, &wrapperspb.BytesValue{})
		if s := b.Stats(); s.Bytes > limit+2<<20 || s.Refused < 2 || status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%+v, %v", s, err)
		}
		time.Sleep(Unread + 2*sweepEvery)
		if s := b.Stats(); s.Bytes != 0 || s.Closed != 1 {
			t.Errorf("after %v: %+v", Unread, s)
		}
		if err := dial().Invoke(t.Context(), "/Endless/Get", &wrapperspb.BytesValue{}, &wrapperspb.BytesValue{}); err != nil {
			t.Error(err)
		}
	})
}

// TestConnections: idle connections beyond the limit are refused and counted. New clients get in after the handshake's
// deadline, and the Unix socket serves its owner all the time.
func TestConnections(t *testing.T) {
	const most = 20
	b := New(1 << 20)
	var log strings.Builder
	s := grpc.NewServer(append(ServerOptions(b, nil, nil), grpc.ConnectionTimeout(300*time.Millisecond))...)
	s.RegisterService(&endless, nil)
	addresses := map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "socket")}
	for network, address := range addresses {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		addresses[network] = l.Addr().String()
		o := Options{Name: network, Most: most, Budget: b, Log: slog.New(slog.DiscardHandler)}
		if network == "tcp" {
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
		go s.Serve(Limit(l, o)) //nolint:errcheck // ends with Stop
	}
	for range 3 * most {
		conn, err := net.Dial("tcp", addresses["tcp"])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	get := func(target string) error {
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return conn.Invoke(ctx, "/Endless/Get", &wrapperspb.BytesValue{}, &wrapperspb.BytesValue{}, grpc.WaitForReady(target != "passthrough:///"+addresses["tcp"]))
	}
	if err := get("unix:" + addresses["unix"]); err != nil {
		t.Errorf("the Unix socket: %v", err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for get("passthrough:///"+addresses["tcp"]) != nil {
		if time.Now().After(deadline) {
			t.Fatal("no new client gets in")
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, l := range b.Stats().Listeners {
		if l.Open > most || (l.Refused >= 2*most) != (l.Name == "tcp") {
			t.Errorf("%+v", l)
		}
	}
	s.Stop()
	if n := strings.Count(log.String(), "connections are refused"); n != 1 {
		t.Errorf("the log has %d lines:\n%s", n, log.String())
	}
	for _, l := range b.Stats().Listeners {
		if l.Open != 0 {
			t.Errorf("after the end: %+v", l)
		}
	}
}

// TestOwnersShare: a quarter of a Unix socket's connections is reserved for root and for the process's own user.
func TestOwnersShare(t *testing.T) {
	const most = 8
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	limited := Limit(l, Options{Name: "unix", Most: most, Budget: New(1), Log: slog.New(slog.DiscardHandler)}).(*listener)
	limited.open.Store(most - most/4) // the number that others may have
	for _, tt := range []struct {
		open int64
		in   bool
	}{{most - most/4, true}, {most, false}} {
		limited.open.Store(tt.open)
		client, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if tt.in {
			c, err := limited.Accept()
			if err != nil || !c.(*conn).owner {
				t.Errorf("uid %d with %d open: %v, %v", os.Getuid(), tt.open, c, err)
			}
			continue
		}
		go limited.Accept() //nolint:errcheck // ends with the listener
		if n, err := client.Read(make([]byte, 1)); err == nil {
			t.Errorf("with %d open: %d bytes", tt.open, n)
		}
	}
}

// TestRequestsInSum: the requests in progress use no more memory together than the budget. A single request is served,
// whatever its size.
func TestRequestsInSum(t *testing.T) {
	b := New(1 << 20)
	request := func(bytes int) *wrapperspb.BytesValue { return wrapperspb.Bytes(make([]byte, bytes)) }
	call := func(bytes int, handler func()) error {
		_, err := b.unary(t.Context(), request(bytes), nil, func(context.Context, any) (any, error) {
			handler()
			return nil, nil
		})
		return err
	}
	for range 2 {
		var second error
		if err := call(600<<10, func() { second = call(600<<10, func() {}) }); err != nil {
			t.Fatal(err)
		}
		if status.Code(second) != codes.ResourceExhausted {
			t.Errorf("two requests that are larger than the budget together: %v", second)
		}
		if err := call(2<<20, func() {}); err != nil {
			t.Errorf("a large request alone: %v", err)
		}
	}
	if s := b.Stats(); s.Bytes != 0 || s.Calls != 0 || s.Refused != 2 {
		t.Errorf("afterwards: %+v", s)
	}
}
