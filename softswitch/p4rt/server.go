package p4rt

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/wire"
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/units"
)

// APIVersion is the version of P4Runtime that Capabilities reports.
const APIVersion = "1.4.0"

// Device is the switch behind the server. Its methods may be called from any goroutine.
type Device interface {
	// Commit makes cfg the running pipeline, atomically between packets. It may wait for the
	// switch, because the server then holds no lock that PacketIn, Digest or Sweep need.
	Commit(cfg *Pipeline)
	// PacketOut passes a frame to the switch as if it had arrived on the CPU port: a
	// packet_out header and the payload. The switch copies it.
	PacketOut(frame []byte)
	// Now is the switch's clock.
	Now() units.Time
}

// Pipeline is a program that runs or is about to run. It is immutable.
type Pipeline struct {
	Program  *engine.Program
	Instance *engine.Instance
	// P4Info and Raw are nil for a program that was loaded without P4Info.
	P4Info *p4configv1.P4Info
	Raw    *p4v1.ForwardingPipelineConfig
}

// Options configure a Server.
type Options struct {
	// DeviceID is the only device_id that requests may name.
	DeviceID uint64
	// Options describe the switch; Now is the Device's.
	entity.Options
	// Tracer and Times observe the packets of every pipeline; nil for none.
	Tracer *engine.Tracer
	Times  *stages.Times
	// StreamQueue bounds the packet-ins, digests and notifications that wait for a slow client;
	// more are dropped. 0 means 1024.
	StreamQueue int
	// Budget bounds the bytes that wait for all clients; nil means the process's budget.
	Budget *clients.Budget
	// Log gets one line per event of the control plane; nil logs nothing.
	Log *slog.Logger
}

// Server serves P4Runtime for one device.
//
// Locking: mu guards the pipeline that reads and writes refer to, and all its entities. A write
// holds it for the whole batch. arbitrating serialises arbitration with its notifications. arbMu
// guards the state of arbitration and the streams. The order is arbitrating, mu, arbMu. PacketIn,
// Digest and Sweep, which the switch calls, lock none of them or give up if one is locked, so the
// data plane never waits.
type Server struct {
	p4v1.UnimplementedP4RuntimeServer
	opts Options
	dev  Device
	log  *slog.Logger

	mu     sync.RWMutex
	target *live // pipeline of reads and writes: saved if not nil, else running
	saved  *live // pipeline of VERIFY_AND_SAVE, until COMMIT
	down   map[uint32]bool

	readingsMu sync.Mutex // needed only while mu is held for reading
	readings   map[*reading]bool

	running atomic.Pointer[live] // the data plane's pipeline

	arbitrating sync.Mutex
	arbMu       sync.Mutex
	arb         *arbitration.Device
	streams     map[arbitration.Client]*outbox
	scopes      map[arbitration.RoleKey]*scope
	nextID      arbitration.Client

	// listeners are the streams of the primaries, replaced as a whole.
	listeners atomic.Pointer[[]listener]

	stats   struct{ packetIn, digest, idle, streamError, packetOutPartial atomic.Uint64 }
	closing chan struct{}
	closed  sync.Once
}

// Stats counts messages that the server dropped so that the switch need not wait, and incomplete
// ones.
type Stats struct {
	PacketInDropped uint64 // no primary, a slow one, or a frame without its header
	DigestDropped   uint64 // messages, for the same reasons
	IdleDropped     uint64 // notifications
	ErrorDropped    uint64 // stream errors
	// PacketOutPartial counts the packet-outs without all metadata fields. A missing field is 0.
	PacketOutPartial uint64
}

// New returns a server without a pipeline.
func New(opts Options, dev Device) *Server {
	opts.DropPort = cmp.Or(opts.DropPort, 511)
	opts.Queues = max(1, opts.Queues)
	opts.StreamQueue = cmp.Or(opts.StreamQueue, 1024)
	opts.Budget = cmp.Or(opts.Budget, clients.Process)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	s := &Server{
		opts: opts, dev: dev, log: opts.Log,
		down: map[uint32]bool{}, readings: map[*reading]bool{},
		streams: map[arbitration.Client]*outbox{},
		scopes:  map[arbitration.RoleKey]*scope{},
		closing: make(chan struct{}),
		arb: arbitration.New(arbitration.Options{
			DeviceID:    opts.DeviceID,
			CheckConfig: checkRoleConfig,
		}),
	}
	s.listeners.Store(&[]listener{})
	return s
}

// Register adds the service to a gRPC server that has ServerOptions.
func (s *Server) Register(gs *grpc.Server) {
	desc := p4v1.P4Runtime_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i, m := range desc.Methods {
		if m.MethodName == "Write" {
			desc.Methods[i].Handler = s.handleWrite
		}
	}
	gs.RegisterService(&desc, s)
	reflection.Register(gs) // serves clients without the .proto files, such as grpcurl
}

// ServerOptions returns the options that a gRPC server for P4Runtime needs. Among others,
// pipelines and batches can exceed gRPC's limit of 4 MB for received messages. Without creds the server speaks plain text.
func ServerOptions(b *clients.Budget, creds credentials.TransportCredentials) []grpc.ServerOption {
	return append(clients.ServerOptions(b, wire.NewCodec(), creds),
		grpc.MaxRecvMsgSize(maxReceive),
		grpc.MaxConcurrentStreams(maxCalls),
		// Clients may ping once a second, with or without a stream. gRPC's own limit is five minutes;
		// it ends the connection of a client that pings every 10 s, a usual value.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		// Stop must wait for the handlers of streams. Otherwise a controller that reconnects
		// at once to a restarted server finds its election id used by its own old stream.
		grpc.WaitForHandlers(true),
	)
}

// maxCalls bounds the calls in progress on one connection.
const maxCalls = 256

// maxReceive bounds a received message, 128 MB as the specification's appendix suggests.
const maxReceive = 128 << 20

// Close ends all streams with UNAVAILABLE and refuses new ones. The owner of the gRPC server calls
// it before Stop, or before GracefulStop, which would otherwise wait for the streams. All goroutines
// of the server end soon after that returns.
func (s *Server) Close() { s.closed.Do(func() { close(s.closing) }) }

// Capabilities reports the version of the API.
func (s *Server) Capabilities(context.Context, *p4v1.CapabilitiesRequest) (*p4v1.CapabilitiesResponse, error) {
	return &p4v1.CapabilitiesResponse{P4RuntimeApiVersion: APIVersion}, nil
}

// Stats returns the counts since the start.
func (s *Server) Stats() Stats {
	out := Stats{s.stats.packetIn.Load(), s.stats.digest.Load(), s.stats.idle.Load(), s.stats.streamError.Load(), s.stats.packetOutPartial.Load()}
	if l := s.running.Load(); l != nil && l.digests != nil {
		out.DigestDropped += l.digests.Dropped()
	}
	return out
}
