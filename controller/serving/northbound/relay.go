package northbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that the health service needs
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/internal/clients"
)

// leaderWait is how long a call waits until there is a leader.
const leaderWait = 10 * time.Second

// maxRelayed is the largest answer that is forwarded, in bytes. A million flows fit.
const maxRelayed = 256 << 20

// RelayOptions configure a Relay. Leader and Creds are required.
type RelayOptions struct {
	// Leader returns the address at which the leader takes members' calls (empty if nobody leads), and a channel
	// that is closed when it changes.
	Leader func() (address string, changed <-chan struct{})
	Creds  credentials.TransportCredentials // this member's credentials
	TLS    *tls.Config                      // nil: plain text
	Log    *slog.Logger

	Member string // this member's name
	// State returns a state that includes every change acknowledged before the call; nil if there is no state yet.
	State func(context.Context) (*FollowerState, error)
	Wait  time.Duration // how long a call waits for a leader; 0 means leaderWait
}

// Relay serves the API of a standby. It answers calls about replicated state itself and forwards all others to the
// leader, which authorises them. It also forwards calls that it would refuse itself.
type Relay struct {
	RelayOptions
	grpc *grpc.Server

	mu      sync.Mutex
	address string // address of the leader that conn leads to
	conn    *grpc.ClientConn
}

// NewRelay returns a relay that is ready to Serve once.
func NewRelay(o RelayOptions) *Relay {
	o.Wait = cmp.Or(o.Wait, leaderWait)
	r := &Relay{RelayOptions: o}
	r.grpc = grpc.NewServer(append(clients.ServerOptions(clients.Process, rawCodec{}, authz.Credentials(o.TLS, nil)),
		grpc.UnknownServiceHandler(r.handle), grpc.StreamInterceptor(explainedStream),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxCalls), keepAlive, enforced,
	)...)
	healthpb.RegisterHealthServer(r.grpc, health.NewServer()) // it reports only that this process lives
	return r
}

// Serve answers calls on the listeners, which it closes, until ctx ends.
func (r *Relay) Serve(ctx context.Context, listeners ...net.Listener) error {
	err := serve(ctx, r.grpc, r.hangUp, 0, listeners) // running calls are not waited for: conn is closed
	r.hangUp()
	return err
}

func (r *Relay) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.conn, r.address = nil, ""
}

// leader returns a connection to the leader, once there is one, and its address.
func (r *Relay) leader(ctx context.Context, method string) (conn *grpc.ClientConn, address string, err error) {
	over := time.NewTimer(r.Wait)
	defer over.Stop()
	for {
		address, changed := r.Leader()
		if address != "" {
			conn, err := r.dial(address)
			return conn, address, err
		}
		select {
		case <-changed:
		case <-over.C:
			return nil, "", status.Errorf(codes.Unavailable, "%s: %s, and no controller of the cluster has been leading for %v: a majority of them is not there", path.Base(method), cmp.Or(authz.MethodOf(method).Leader, "the leader is asked"), r.Wait)
		case <-ctx.Done():
			return nil, "", status.FromContextError(ctx.Err()).Err()
		}
	}
}

// another reports whether a member other than the one at address leads. The channel is closed when that may have
// changed.
func (r *Relay) another(address string) (bool, <-chan struct{}) {
	now, changed := r.Leader()
	return now != "" && now != address, changed
}

// hold returns a context for a call to the leader at an address. It ends when another member leads, because a
// frozen or isolated old leader does not answer.
func (r *Relay) hold(ctx context.Context, address string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			other, changed := r.another(address)
			if other {
				cancel()
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

// statusOf returns the caller's error for a failed call of a method at the leader, or former leader, at an address.
func (r *Relay) statusOf(ctx context.Context, method, address string, err error) error {
	c := status.Code(err)
	if err == nil || c != codes.Canceled && c != codes.Unavailable || tells(err) || ctx.Err() != nil { // or the caller has gone
		return err
	}
	why := fmt.Errorf("the leader did not finish its answer: %s", status.Convert(err).Message())
	if other, _ := r.another(address); other {
		why = fmt.Errorf("another controller has become leader since this call was forwarded: %s", status.Convert(err).Message())
	} else if c == codes.Canceled {
		why = errors.New("this controller has become leader, or is stopping, since it forwarded this call")
	}
	if authz.MethodOf(method).Changes() {
		return toStatus(outcome.Unknown(why))
	}
	return status.Error(codes.Unavailable, clean(why.Error()))
}

func (r *Relay) dial(address string) (*grpc.ClientConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil && r.address == address {
		return r.conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(r.Creds), grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(maxRelayed), grpc.MaxCallSendMsgSize(maxRelayed)))
	if err != nil {
		return nil, err
	}
	if r.conn != nil {
		_ = r.conn.Close() // the connection to the former leader
	}
	r.conn, r.address = conn, address
	return conn, nil
}

// soon is how long the leader may take for a call that can be answered here too.
const soon = time.Second

// handle answers a call here, or has the leader answer it.
func (r *Relay) handle(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	if followerCalls[method] == nil {
		return r.handOn(in, method)
	}
	ctx := in.Context()
	var request raw
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	if address, _ := r.Leader(); authz.MethodOf(method).LeaderFirst && address != "" {
		ctx, cancel := context.WithTimeout(ctx, soon)
		text, err := r.ask(ctx, method, request)
		cancel()
		if c := status.Code(err); c != codes.Unavailable && c != codes.DeadlineExceeded {
			return reply(in, &text, err)
		}
	}
	shared, err := r.State(ctx)
	if err == nil && shared != nil {
		m, admitted, err := shared.call(ctx, method, request)
		if admitted {
			if err := in.SetHeader(metadata.Pairs(AnsweredBy, r.Member)); err != nil {
				return err
			}
			return reply(in, m, err)
		}
	}
	if address, _ := r.Leader(); err != nil && address == "" {
		return status.Errorf(codes.Unavailable, "%s: it is answered from the cluster's state: %v", path.Base(method), clean(err.Error()))
	}
	text, err := r.ask(ctx, method, request)
	return reply(in, &text, err)
}

func reply(in grpc.ServerStream, m any, err error) error {
	if err != nil {
		return err
	}
	return in.SendMsg(m)
}

// ask forwards a call of one request and one answer.
func (r *Relay) ask(ctx context.Context, method string, request raw) (answer raw, err error) {
	conn, address, err := r.leader(ctx, method)
	if err != nil {
		return nil, err
	}
	held, done := r.hold(authz.Relay(ctx), address)
	defer done()
	err = conn.Invoke(held, method, &request, &answer)
	return answer, r.statusOf(ctx, method, address, err)
}

// handOn forwards a call to the leader and passes its answers on, as long as that member leads.
func (r *Relay) handOn(in grpc.ServerStream, method string) error {
	conn, address, err := r.leader(in.Context(), method)
	if err != nil {
		return err
	}
	ctx, cancel := r.hold(authz.Relay(in.Context()), address)
	defer cancel()
	out, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return r.statusOf(in.Context(), method, address, err)
	}
	go func() {
		for {
			var m raw
			if err := in.RecvMsg(&m); errors.Is(err, io.EOF) {
				_ = out.CloseSend()
				return
			} else if err != nil {
				cancel()
				return
			}
			if err := out.SendMsg(&m); err != nil {
				return // RecvMsg has the status
			}
		}
	}()
	if header, err := out.Header(); err == nil && header != nil {
		if err := in.SendHeader(header); err != nil {
			return err
		}
	}
	for {
		var m raw
		if err := out.RecvMsg(&m); err != nil {
			in.SetTrailer(out.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return r.statusOf(in.Context(), method, address, err)
		}
		if err := in.SendMsg(&m); err != nil {
			return err
		}
	}
}

// raw is a message as it is on the wire.
type raw []byte

// rawCodec leaves raw messages as they are, and others to protobuf.
type rawCodec struct{}

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*raw); ok {
		return mem.BufferSlice{mem.SliceBuffer(*m)}, nil
	}
	return encoding.GetCodecV2("proto").Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*raw); ok {
		*m = data.Materialize()
		return nil
	}
	return encoding.GetCodecV2("proto").Unmarshal(data, v)
}
