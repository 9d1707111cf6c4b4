// Package session keeps one switch's P4Runtime connection: it dials, bids for mastership, watches the stream, and
// starts again with exponential back-off when anything breaks. It works with switches that follow the P4Runtime
// specification and with simple_switch_grpc, which deviates from it in arbitration, errors and reads.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/tlsfiles"
)

// Role is this controller's role at the switch.
type Role uint8

// The roles.
const (
	Disconnected Role = iota // no stream
	Backup                   // connected, or refused, because another controller is primary
	Primary                  // may write
)

// String returns the role's name.
func (r Role) String() string {
	return [...]string{"disconnected", "backup", "primary"}[r]
}

// Handler receives the messages of the switch. One goroutine at a time calls its methods, in the order
// of the events. They must return soon.
type Handler interface {
	// Role reports a changed role, or why a session stays disconnected or backup. A session that becomes
	// primary may find the switch in any state.
	Role(r Role, why error)
	// Message takes a packet, a digest or an idle timeout. A digest is acknowledged once it returns.
	Message(m *p4v1.StreamMessageResponse)
	// PacketRefused reports that the switch does not accept packets, for example without a CPU port.
	PacketRefused(why error)
}

// Options configure a session.
type Options struct {
	// Name of the switch, for messages.
	Name string
	// DeviceID is P4Runtime's device_id.
	DeviceID uint64
	// Address is host:port of the P4Runtime server.
	Address string
	// ElectionID is the first id to bid, ≥ 1. If the switch says that there is no primary but a higher id
	// was seen, the session bids one more than that, as the specification asks.
	ElectionID uint64
	// Terms is set for the leader of a cluster; nil means a controller without a cluster.
	Terms Terms
	// Dial replaces plain TCP; see TLS. Interceptors for tests go in here too.
	Dial []grpc.DialOption
	// RetryMin and RetryMax bound the wait between two attempts, which doubles each time
	// and is shortened by up to half at random; default 100 ms and 5 s.
	RetryMin, RetryMax time.Duration
	// Heartbeat is the time after which a quiet switch is asked for a sign of life. The connection ends when the
	// switch's machine has acknowledged nothing for three heartbeats, or the switch has sent nothing for ten. Default
	// 3 s.
	Heartbeat time.Duration
	// BatchSize is the most updates in one write; default 1000.
	BatchSize int
	// Beside, if set, may use each connection for something besides P4Runtime. It is called when the
	// stream exists, and returns soon after ctx has ended.
	Beside func(ctx context.Context, conn grpc.ClientConnInterface)
	// Log defaults to slog.Default().
	Log *slog.Logger
}

// Terms give a cluster's leader the upper half of its election ids, its term. Later leaders have higher terms.
type Terms interface {
	Term() uint64
	// RaiseTerm makes the term of this lead, and of each later one, higher than one that a switch knows, and returns
	// it. It fails if another controller leads, or may lead. It may take seconds.
	RaiseTerm(above uint64) (uint64, error)
}

func (o *Options) defaults() {
	o.RetryMin, o.RetryMax = cmp.Or(o.RetryMin, 100*time.Millisecond), cmp.Or(o.RetryMax, 5*time.Second)
	o.Heartbeat, o.BatchSize, o.ElectionID = cmp.Or(o.Heartbeat, 3*time.Second), cmp.Or(o.BatchSize, 1000), cmp.Or(o.ElectionID, 1)
	o.Log = cmp.Or(o.Log, slog.Default())
	if len(o.Dial) == 0 {
		o.Dial = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
}

// ErrDisconnected is returned by everything that needs a connection when there is none.
var ErrDisconnected = errors.New("the switch is not connected")

// ErrStopped is the reason why a session is disconnected after its Run was ended.
var ErrStopped = errors.New("the controller released the switch")

// ErrBusy is returned when packets are handed over faster than the switch takes them.
var ErrBusy = errors.New("the stream to the switch is full")

// Session is one switch's connection. Run owns the connection and the role; others see
// them through mu.
type Session struct {
	opts Options
	h    Handler

	mu     sync.Mutex
	stream *stream // nil while disconnected
}

// New returns a session that does nothing until Run.
func New(opts Options, h Handler) *Session {
	opts.defaults()
	return &Session{opts: opts, h: h}
}

// maxMessage is the largest message from a switch: BMv2 puts all it holds into one
// ReadResponse.
const maxMessage = 1 << 30

// dialOptions are common to sessions and to clients without one.
func dialOptions(extra []grpc.DialOption) []grpc.DialOption {
	return append([]grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(), // a switch's management port is never behind one
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 5 * time.Second}),
		// With windows of fixed size gRPC does not send a PING for every packet-in to estimate the bandwidth.
		grpc.WithStaticConnWindowSize(window), grpc.WithStaticStreamWindowSize(window),
	}, extra...)
}

// window is how many bytes a switch may send before the controller has read them.
const window = 1 << 20

// Beat returns the first instant after now that is a multiple of every after the start of the process. Loops of all
// switches tick at such instants, so that one wake-up of the processor serves all of them and a switch gets its
// messages in one write.
func Beat(now time.Time, every time.Duration) time.Time {
	return began.Add((now.Sub(began)/every + 1) * every)
}

var began = time.Now()

// dialer connects by TCP, or to a Unix socket, and notes whether the last connection was refused: the machine
// answered that nothing listens there. The kernel ends a connection whose other end acknowledges nothing for a time.
type dialer struct {
	unacknowledged time.Duration
	refused        atomic.Bool
}

func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	to := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { // if the kernel cannot do it, heartbeats find out later
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.unacknowledged.Milliseconds()))
		})
	}}
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix://"); ok { // as gRPC's resolver writes unix:PATH
		network, address = "unix", path
	}
	c, err := to.DialContext(ctx, network, address)
	d.refused.Store(errors.Is(err, syscall.ECONNREFUSED))
	return c, err
}

// ErrRefused is in the error of a session that could not connect because nothing listens at the
// switch's address.
var ErrRefused = errors.New("nothing listens at the switch's address")

// connectionRefused is an error that also wraps ErrRefused; its text does not change.
type connectionRefused struct{ error }

// Unwrap returns ErrRefused and the error as gRPC has it.
func (e connectionRefused) Unwrap() []error { return []error{ErrRefused, e.error} }

// Run connects and keeps connected until the context ends; it returns the context's error.
func (s *Session) Run(ctx context.Context) error {
	wait := Backoff{Min: s.opts.RetryMin, Max: s.opts.RetryMax}
	for {
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			s.h.Role(Disconnected, ErrStopped)
			return ctx.Err()
		}
		if time.Since(began) > s.opts.RetryMax {
			wait.Reset() // the session was up for a while, so waits start from the shortest
		}
		role := Disconnected
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			role = Backup // another controller has the switch
		}
		s.h.Role(role, err)
		pause := wait.Next()
		s.opts.Log.Debug("session ended", "switch", s.opts.Name, "err", err, "retry", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// refusedError is a stream that ended with INVALID_ARGUMENT before any arbitration. Both the specification and BMv2
// refuse a second controller with the same election id in this way.
type refusedError struct {
	id  *p4v1.Uint128
	err error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the switch refuses election id %s, which another controller may be using: %v", idText(e.id), plain(e.err))
}

func (e *refusedError) Unwrap() error { return e.err }

// farewell is how long a switch has to end the stream of a controller that leaves. Then the switch knows that the
// election id is free; the next session may bid with it.
const farewell = time.Second

// once makes one connection and serves it until it breaks, or until the context ends and the stream
// with it.
func (s *Session) once(until context.Context) error {
	d := dialer{unacknowledged: maxUnacknowledged * s.opts.Heartbeat}
	conn, err := grpc.NewClient(s.opts.Address, append([]grpc.DialOption{grpc.WithContextDialer(d.dial)}, dialOptions(s.opts.Dial)...)...)
	if err != nil {
		return fmt.Errorf("address %q: %w", s.opts.Address, err)
	}
	defer conn.Close()
	refused := func(err error) error {
		if err != nil && d.refused.Load() {
			return connectionRefused{err}
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(until))
	defer cancel(nil)
	var joined atomic.Bool
	defer context.AfterFunc(until, func() {
		if joined.Load() {
			time.AfterFunc(farewell, func() { cancel(until.Err()) })
			return
		}
		cancel(until.Err())
	})()
	st := newStream(conn, s.opts)
	channel, err := st.rpc.StreamChannel(ctx)
	if err != nil {
		return refused(cause(ctx, plain(err)))
	}
	joined.Store(true)
	s.mu.Lock()
	s.stream = st
	s.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { cancel(st.send(ctx, until.Done(), channel)) })
	wg.Go(func() { cancel(st.heartbeat(ctx, s.opts.Heartbeat)) })
	if s.opts.Beside != nil {
		wg.Go(func() { s.opts.Beside(ctx, conn) })
	}
	err = st.receive(channel, s.h)
	err = cause(ctx, err)
	cancel(err)
	s.mu.Lock()
	s.stream = nil
	s.mu.Unlock()
	wg.Wait()
	return refused(err)
}

// cause returns the reason why ctx was cancelled, or err if it was not.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// Client returns the connection's unary side, or ErrDisconnected. It becomes useless when
// the connection breaks; calls then fail.
func (s *Session) Client() (*Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream == nil {
		return nil, ErrDisconnected
	}
	return s.stream.client, nil
}

// PacketOut hands a packet to the switch. It never waits: ErrBusy when the stream is full,
// ErrDisconnected when there is none.
func (s *Session) PacketOut(p *p4v1.PacketOut) error {
	s.mu.Lock()
	st := s.stream
	s.mu.Unlock()
	if st == nil {
		return ErrDisconnected
	}
	return st.queue(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: p}})
}

func isCode(err error, code codes.Code) bool {
	st, ok := status.FromError(err)
	return ok && st.Code() == code
}

// Backoff is how long to wait before trying again: Min at first, twice as long each time up to Max, shortened by up
// to half at random so that sessions that failed together do not retry together.
type Backoff struct {
	Min, Max time.Duration
	last     time.Duration // without the random part; 0 before the first
}

// Next returns the next wait.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.Min), b.Max)
	return b.last/2 + rand.N(b.last/2+1)
}

// Reset begins again with Min.
func (b *Backoff) Reset() { b.last = 0 }

// Credentials returns how to dial a switch: TLS when the configuration names a CA, else plain TCP. The files, which
// are in dirs, are read now, to report their errors, and again for each connection, so that certificates may be
// replaced while the controller runs.
func Credentials(c config.TLS, dirs confine.Dirs) (grpc.DialOption, error) {
	if c.CA == "" {
		return grpc.WithTransportCredentials(insecure.NewCredentials()), nil
	}
	creds, err := tlsfiles.Client(tlsfiles.Files{CA: c.CA, Cert: c.Cert, Key: c.Key, ServerName: c.ServerName, Prefix: "tls.", Read: dirs.Secret})
	if err != nil {
		return nil, err
	}
	return grpc.WithTransportCredentials(creds), nil
}
