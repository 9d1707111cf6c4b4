package northbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of health
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/access"
)

// leaderWait is how long a call waits for a leader to be there.
const leaderWait = 10 * time.Second

// maxRelayed is the largest answer that is handed on, in bytes. A million flows fit.
const maxRelayed = 256 << 20

// RelayOptions configure a Relay. Leader and Creds are required.
type RelayOptions struct {
	// Leader returns the address at which the leader takes calls of members, empty when nobody
	// leads, and a channel that is closed when that changes.
	Leader func() (address string, changed <-chan struct{})
	Creds  credentials.TransportCredentials // of this member
	TLS    *tls.Config                      // nil: plain text
	Log    *slog.Logger
}

// Relay serves the API of a controller that does not lead: it hands every call on to the one that
// does, which decides who may do what.
type Relay struct {
	RelayOptions
	grpc *grpc.Server

	mu      sync.Mutex
	address string // of conn
	conn    *grpc.ClientConn
}

// NewRelay returns a relay that is ready to Serve once.
func NewRelay(o RelayOptions) *Relay {
	r := &Relay{RelayOptions: o}
	r.grpc = grpc.NewServer(
		grpc.Creds(access.Credentials(o.TLS, nil)), grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(r.handOn),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxCalls), keepAlive, enforced,
	)
	healthpb.RegisterHealthServer(r.grpc, health.NewServer()) // the process lives; the rest is the leader's to say
	return r
}

// Serve answers calls on the listeners, which it closes, until ctx ends.
func (r *Relay) Serve(ctx context.Context, listeners ...net.Listener) error {
	err := serve(ctx, r.grpc, r.hangUp, 0, listeners) // calls have nowhere to go
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

// leader returns a connection to the leader, once there is one.
func (r *Relay) leader(ctx context.Context) (*grpc.ClientConn, error) {
	over := time.NewTimer(leaderWait)
	defer over.Stop()
	for {
		address, changed := r.Leader()
		if address != "" {
			return r.dial(address)
		}
		select {
		case <-changed:
		case <-over.C:
			return nil, status.Errorf(codes.Unavailable, "no controller of the cluster has been leading for %v: a majority of them is not there", leaderWait)
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
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
		_ = r.conn.Close() // who led before
	}
	r.conn, r.address = conn, address
	return conn, nil
}

// handOn is a call.
func (r *Relay) handOn(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	conn, err := r.leader(in.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(access.Relay(in.Context()))
	defer cancel()
	out, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
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
			return err
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
