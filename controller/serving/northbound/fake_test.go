package northbound

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/preview/observed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// backend is a fabric of one switch and two hosts. It refuses a configuration that contains "fault", and panics at one
// that contains "panic".
type backend struct {
	mu      sync.Mutex
	applied []string
	links   []string
	err     error // of Plan, Apply and SetLink

	parameters []*pb.HostParameter
	ipv4       string // of h1, 10.0.0.1 by default
}

func (b *backend) HostParameters() []*pb.HostParameter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parameters
}

// Counted: the switch counts h1's bytes; the start of h2's count is unknown.
func (b *backend) Counted() []observed.Source {
	return []observed.Source{
		{Host: "h1", Switch: "s1", Since: clock, FanIn: 3, Pairs: []observed.Pair{
			{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Bytes: 9000, Ended: 1, EndedBytes: 4000, Largest: 4000, Running: 1, RunningBytes: 5000, RunningRate: 1000},
			{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.77"), Bytes: 7},
		}},
		{Host: "h2", Switch: "s1"},
	}
}

func (*backend) Path(_, _ netip.AddrPort) []config.Endpoint { return nil }

func (b *backend) Fabric() *pb.GetFabricResponse {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &pb.GetFabricResponse{
		Name: "test", Generation: 3 + uint64(len(b.applied)), Config: "name: test\n",
		Switches: []*pb.Switch{{Name: "s1", DeviceId: 1, Address: "127.0.0.1:9559"}},
		Hosts:    []*pb.Host{{Name: "h1", Ipv4: cmp.Or(b.ipv4, "10.0.0.1"), Mac: "02:00:00:00:00:01"}, {Name: "h2", Ipv4: "10.0.0.2"}},
		Links: []*pb.Link{
			{A: &pb.Endpoint{Node: "s1", Port: 1}, B: &pb.Endpoint{Node: "h1"}, RateBps: 1e8, Delay: pb.Duration(time.Microsecond), State: pb.PortStatus_STATE_UP},
			{A: &pb.Endpoint{Node: "h2"}, B: &pb.Endpoint{Node: "s1", Port: 2}, RateBps: 1e8},
		},
	}
}

func (b *backend) Switches() []*pb.SwitchStatus {
	return []*pb.SwitchStatus{{
		Name: "s1", DeviceId: 1, State: pb.SwitchStatus_STATE_DEGRADED, Error: "bad bytes \xff", Since: pb.Stamp(clock), Entries: 9, Reconciles: 2,
		Capabilities: []*pb.Capability{{Name: "registers", Detail: "UNIMPLEMENTED"}},
		Ports:        []*pb.PortStatus{{Port: 1, Peer: "h1", State: pb.PortStatus_STATE_UP}, {Port: 2, Peer: "h2", State: pb.PortStatus_STATE_DOWN}, {Port: 3, Peer: "h3"}},
	}}
}

func (b *backend) Switch(name string) (*pb.SwitchStatus, bool) {
	s := b.Switches()[0]
	return s, name == s.Name
}

func (b *backend) SwitchSummaries(name string, status bool) []*pb.SwitchStatus {
	s := b.Switches()[0]
	if name != "" && name != s.Name {
		return nil
	}
	if status {
		s.Features = &pb.FeatureStatus{Telemetry: &pb.TelemetryStatus{Queues: []*pb.TelemetryQueue{{Port: 1, Queue: 7, HeldBytes: 9}}}}
	}
	return []*pb.SwitchStatus{s}
}

func (b *backend) check(config []byte) error {
	if strings.Contains(string(config), "panic") {
		panic("a fabric too many")
	}
	if strings.Contains(string(config), "fault") {
		return fmt.Errorf("configuration: %w", &yamlnode.Error{File: "f.yaml", Faults: []yamlnode.Fault{
			{Line: 12, Field: "links[3].rate", Text: `"fast" is not a rate`}, {Field: "name", Text: "is missing"},
		}})
	}
	return b.err
}

func (b *backend) Plan(_ context.Context, _ string, config []byte, failures int) (*pb.PlanConfigResponse, error) {
	if err := b.check(config); err != nil {
		return nil, err
	}
	plan := &pb.SwitchPlan{Name: "s1", Unreachable: "no answer", Changes: []*pb.Change{{Kind: pb.Change_KIND_INSERT, Table: "route", Key: "10.0.0.0/24"}}}
	return &pb.PlanConfigResponse{Switches: []*pb.SwitchPlan{plan}, Notes: []string{fmt.Sprintf("looked at %d failures", failures)}}, nil
}

func (b *backend) Apply(_ context.Context, file string, config []byte) (uint64, []*pb.SwitchResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.check(config); err != nil {
		return 0, nil, err
	}
	b.applied = append(b.applied, file)
	return 3 + uint64(len(b.applied)), []*pb.SwitchResult{{Name: "s1", Inserted: 1, Modified: 2, Deleted: 3, Error: "table full"}}, nil
}

func (b *backend) SetLink(_ context.Context, x, y string, up bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.links = append(b.links, fmt.Sprintf("%s-%s %v", x, y, up))
	if y == "s9" {
		return fmt.Errorf("%w %q and %q: anything", topology.ErrNoLink, x, y)
	}
	return b.err
}

// rig is a server with a fake backend, and a client connection.
type rig struct {
	*backend
	weights    *weights.Registry
	audit      *audit.Log
	priorities *priority.Registry
	events     *events.Bus[*pb.Event]
	samples    *events.Bus[feature.Sample]
	conn       *grpc.ClientConn
	stop       func() // stops the server and waits for it
}

func start(t *testing.T) *rig { return startWith(t, func(*rig, *Options) {}) }

// startWith is start with other options. Options that refer to the rig get it as an argument.
func startWith(t *testing.T, change func(*rig, *Options)) *rig {
	t.Helper()
	log := audit.New(audit.Options{Now: func() time.Time { return clock }})
	reg := weights.New(weights.Options{Audit: log})
	r := &rig{backend: &backend{}, weights: reg, audit: log, priorities: priority.New(nil), events: events.NewNumberedBus(16, func(e *pb.Event, cursor string) { e.Cursor = cursor }), samples: events.NewBus[feature.Sample](0)}
	o := Options{Backend: r.backend, Weights: reg, Audit: log, Priorities: r.priorities, Events: r.events, Samples: r.samples, Authorizer: authz.New(authz.Options{Loopback: authz.Admin}), Log: slog.New(slog.DiscardHandler)}
	change(r, &o)
	srv := New(o)
	lis := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, lis) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	var err error
	r.conn, err = grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.conn.Close(); r.stop() })
	return r
}

func (r *rig) fabric() pb.FabricServiceClient { return pb.NewFabricServiceClient(r.conn) }
func (r *rig) weight() pb.WeightServiceClient { return pb.NewWeightServiceClient(r.conn) }
func (r *rig) channel() pb.PriorityServiceClient {
	return pb.NewPriorityServiceClient(r.conn)
}
func (r *rig) host() pb.HostServiceClient { return pb.NewHostServiceClient(r.conn) }

func flow(src string, port uint32) *pb.FlowKey {
	return &pb.FlowKey{SrcIpv4: src, DstIpv4: "10.0.0.9", SrcPort: port, DstPort: 50151}
}
