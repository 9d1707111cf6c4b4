// Package northbound serves the gRPC API headgate.v1, and gNMI beside it. It only translates: between protobuf and
// the plain types of controller/allocation/weights, and between errors and status codes. Its only state are the
// attached hosts, their last reports, and callers' predictions (package observed).
package northbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/conduct"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/serving/series"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/preview/observed"
)

// stopWait is how long Serve lets calls end by themselves.
const stopWait = 2 * time.Second

// Backend is the controller's core. Its methods are safe for concurrent use.
type Backend interface {
	// Fabric returns the running configuration.
	Fabric() *pb.GetFabricResponse
	// Path returns the ports of switches that a flow crosses, or nil if its way is not known.
	Path(src, dst netip.AddrPort) []config.Endpoint
	// HostParameters returns the parameters that all hosts share, always in one order.
	HostParameters() []*pb.HostParameter
	// Counted returns the flow counters of each host's first-hop switch.
	Counted() []observed.Source
	// Switches returns the status of each switch.
	Switches() []*pb.SwitchStatus
	// SwitchSummaries is cheaper than Switches and Switch. It returns the name and ports of one switch, or of all
	// if name is "". With status set it adds the features' status.
	SwitchSummaries(name string, status bool) []*pb.SwitchStatus
	// Plan returns the changes that Apply would make, and makes none. Its notes warn of faults of the fabric as a
	// whole, such as possible deadlocks: as it is now and, if failures is above 0, while up to that many more links
	// fail. A configuration with faults gives an error that unwraps to a *yamlnode.Error.
	Plan(ctx context.Context, file string, config []byte, failures int) (*pb.PlanConfigResponse, error)
	// Apply makes the configuration the desired one and returns its generation. If it has faults (see Plan),
	// nothing is applied.
	Apply(ctx context.Context, file string, config []byte) (uint64, []*pb.SwitchResult, error)
	// SetLink takes every link between a and b out of service, or puts it back. a and b are nodes, or ports such as
	// leaf1:3. If there is no link, the error wraps topology.ErrNoLink.
	SetLink(ctx context.Context, a, b string, up bool) error
}

// Options of a Server. Backend, Weights, Audit and Authorizer are required.
type Options struct {
	Backend    Backend
	Weights    *weights.Registry
	Audit      *audit.Log                  // the log that Weights writes to
	History    *history.Store              // nil: applied configurations are not kept
	Priorities *priority.Registry          // nil: no virtual priorities
	Conduct    *conduct.Judge              // nil: no judge of hosts' reports
	Events     *events.Bus[*pb.Event]      // nil: no events
	Samples    *events.Bus[feature.Sample] // nil: no telemetry
	Member     string                      // name of this member, which leads its cluster; empty without a cluster
	State      State                       // nil: nothing outlives the process
	Leads      func() error                // returns why this controller may no longer lead; nil: there is no cluster
	Pending    *outcome.Pending            // the changes in progress; nil: none
	Members    Members                     // nil: no cluster, or one with an external etcd
	Lease      time.Duration               // how long an absent host's weights are kept; 0 means DefaultLease
	Authorizer *authz.Authorizer           // who may call what
	TLS        *tls.Config                 // nil: plain text
	MembersTLS *tls.Config                 // TLS of listeners that authz.Members returns
	Log        *slog.Logger                // nil: slog.Default
}

// Server is the API's server. Its services share the Options, and own only the table of
// attached hosts.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
	log    *slog.Logger
	stop   context.CancelFunc
	series *series.Recorder

	// Fabric and Hosts are the services without authorisation, for trusted callers in this process.
	Fabric pb.FabricServiceServer
	Hosts  pb.HostServiceServer
}

// maxRequest bounds a request, in bytes: the largest configuration and its name.
const maxRequest = yamlnode.MaxText + 64<<10

// maxCalls bounds the concurrent calls of one connection.
const maxCalls = 1000

// keepAlive detects dead clients; enforced bounds how often clients may send keepalive pings.
var (
	keepAlive = grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second})
	enforced  = grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true})
)

// New returns a server that is ready to Serve once.
func New(o Options) *Server {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Priorities = cmp.Or(o.Priorities, priority.New(nil))
	o.History = cmp.Or(o.History, history.New(nil, o.Log))
	o.Events = cmp.Or(o.Events, events.NewBus[*pb.Event](0))
	o.Samples = cmp.Or(o.Samples, events.NewBus[feature.Sample](0))
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	if o.Leads == nil {
		o.Leads = func() error { return nil }
	}
	led, once := lead{o.Leads, o.Pending}, &requests{state: o.State}
	s := &Server{health: health.NewServer(), log: o.Log}
	calls := logging.LoggerFunc(func(ctx context.Context, level logging.Level, msg string, fields ...any) {
		o.Log.Log(ctx, slog.Level(level), msg, fields...)
	})
	logged := []logging.Option{logging.WithLogOnEvents(logging.FinishCall), logging.WithLevels(level)}
	recovered := recovery.WithRecoveryHandlerContext(func(ctx context.Context, p any) error {
		o.Log.ErrorContext(ctx, "a call of the API panicked", "panic", p, "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "internal error: the controller's log has the details")
	})
	s.grpc = grpc.NewServer(append(clients.ServerOptions(clients.Process, nil, authz.Credentials(o.TLS, o.MembersTLS)),
		grpc.InTapHandle(led.tap(o.Authorizer.Tap)),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.ChainUnaryInterceptor(logging.UnaryServerInterceptor(calls, logged...), explainedCall, recovery.UnaryServerInterceptor(recovered), led.unary, o.Authorizer.Unary, durations, once.unary),
		grpc.ChainStreamInterceptor(logging.StreamServerInterceptor(calls, logged...), explainedStream, recovery.StreamServerInterceptor(recovered), led.stream, o.Authorizer.Stream, durationsOfStream),
		keepAlive, enforced,
	)...)
	running, stop := context.WithCancelCause(context.Background())
	s.stop = func() { stop(errStopping) }
	hosts := newHostService(o, running)
	s.series = series.New(o.Backend, hosts.flows)
	s.Hosts = hosts
	s.Fabric = &fabricService{
		Options: o, fabric: o.Backend.Fabric, leader: func(context.Context) (string, error) { return o.Member, nil }, running: running,
		completions: hosts.observed.Completions, series: s.series,
	}
	pb.RegisterFabricServiceServer(s.grpc, s.Fabric)
	pb.RegisterWeightServiceServer(s.grpc, &weightService{weights: o.Weights, audit: o.Audit, running: running})
	pb.RegisterStateServiceServer(s.grpc, &stateService{state: o.State, members: o.Members, audit: o.Audit})
	pb.RegisterPriorityServiceServer(s.grpc, &priorityService{priorities: o.Priorities, audit: o.Audit, running: running})
	pb.RegisterHostServiceServer(s.grpc, hosts)
	gnmi.Register(s.grpc, openConfig{o}, running)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s
}

// level logs a client's own errors at level info only, because the client receives them.
func level(c codes.Code) logging.Level {
	switch c {
	case codes.OK, codes.Canceled:
		return logging.LevelDebug
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return logging.LevelError
	}
	return logging.LevelInfo
}

// Serve answers calls on the listeners until ctx ends. It then waits up to stopWait for running calls. It closes
// the listeners. It returns nil if ctx ended, and an error if a listener failed. It may be called once.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	recording, end := context.WithCancel(ctx)
	var recorder sync.WaitGroup
	recorder.Go(func() { s.series.Run(recording) })
	defer recorder.Wait()
	defer end()
	return serve(ctx, s.grpc, func() { s.health.Shutdown(); s.stop() }, stopWait, listeners)
}

// serve is Serve for any gRPC server. It calls stop before it waits for running calls, for at most wait.
func serve(ctx context.Context, server *grpc.Server, stop func(), wait time.Duration, listeners []net.Listener) error {
	group, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	for _, lis := range listeners {
		group.Go(func() error {
			err := server.Serve(lis)
			if ctx.Err() != nil || failed.Err() != nil {
				return nil
			}
			return fmt.Errorf("northbound API at %v: %w", lis.Addr(), err)
		})
	}
	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	stop() // streams end now
	hard := time.AfterFunc(wait, server.Stop)
	defer hard.Stop()
	server.GracefulStop()
	return group.Wait()
}

// until returns a context that ends when the stream ends or the server stops.
func until(stream, running context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(stream)
	release := context.AfterFunc(running, func() { cancel(errStopping) })
	return ctx, func() { release(); cancel(context.Canceled) }
}

var errStopping = status.Error(codes.Unavailable, "the controller is stopping")

// streamEnd is the status of a stream whose context ended.
func streamEnd(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return toStatus(err)
}
