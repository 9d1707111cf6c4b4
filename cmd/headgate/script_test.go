package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/serving/northbound"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/preview/observed"
	"github.com/headgate/headgate/units"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"headgate": main}) }

// TestScripts runs the operator's commands, as processes, against a server in this one.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			s, err := serve()
			if err != nil {
				return err
			}
			env.Values["server"] = s
			env.Setenv("HEADGATE_SERVER", s.address)
			env.Setenv("TZ", "UTC")
			env.Defer(s.stop)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await, "publish": publish, "attach": attach, "stopserver": func(ts *testscript.TestScript, _ bool, _ []string) { get(ts).stop() },
		},
	})
}

// server is a controller without switches. Its Backend methods show a small fixed fabric.
type server struct {
	address string
	weights *weights.Registry
	history *history.Store
	events  *events.Bus[*pb.Event]
	samples *events.Bus[feature.Sample]
	stop    func()

	mu   sync.Mutex
	down bool // the link s1 to s2
}

func serve() (*server, error) {
	log := audit.New(audit.Options{})
	reg := weights.New(weights.Options{Audit: log})
	s := &server{weights: reg, events: events.NewBus[*pb.Event](16), samples: events.NewBus[feature.Sample](0)}
	ctx, cancel := context.WithCancel(context.Background())
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, err
	}
	s.address = lis.Addr().String()
	priorities := priority.New(nil)
	paper := channel.Paper(12 * units.Microsecond)
	cfg, err := config.Parse("f.yaml", fmt.Appendf(nil, `
name: f
switches: [{name: s1, device_id: 1, address: "127.0.0.1:9559"}]
hosts: [{name: h1, ipv4: 10.0.0.1}]
links: [{a: "s1:1", b: h1, rate: 100Gbps}]
prioplus: {base_rtt: %v, fluctuation: %v, noise: %v, priorities: 3}
`, paper.Base, paper.Fluctuation, paper.Noise), nil, priority.Section())
	if err == nil {
		_, err = priorities.Configure(cfg)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	kept, err := store.Open("", store.Options{})
	if err == nil {
		err = kept.SaveConfig(history.Entry{File: "tiny.yaml", YAML: "name: tiny\n", Generation: 3, Applied: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), By: "controller", Why: "the file at the start"}, nil)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	s.history = history.New(kept, slog.New(slog.DiscardHandler))
	api := northbound.New(northbound.Options{Backend: s, History: s.history, Weights: reg, Audit: log, Priorities: priorities, Events: s.events, Samples: s.samples, Authorizer: authz.New(authz.Options{Loopback: authz.Admin}), Log: slog.New(slog.DiscardHandler)})
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, lis) }()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	return s, nil
}

func (*server) Path(_, _ netip.AddrPort) []config.Endpoint { return nil }

func (s *server) Fabric() *pb.GetFabricResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := pb.PortStatus_STATE_UP
	if s.down {
		state = pb.PortStatus_STATE_DOWN
	}
	return &pb.GetFabricResponse{
		Name: "tiny", Generation: 3, Config: "name: tiny\n",
		Switches: []*pb.Switch{{Name: "s1", DeviceId: 1, Address: "127.0.0.1:9559"}, {Name: "s2", DeviceId: 2, Address: "127.0.0.1:9560"}},
		Hosts:    []*pb.Host{{Name: "h1", Ipv4: "10.0.0.1", Mac: "02:00:00:00:00:01"}},
		Links: []*pb.Link{
			{A: &pb.Endpoint{Node: "s1", Port: 1}, B: &pb.Endpoint{Node: "s2", Port: 1}, RateBps: 1e8, Delay: pb.Duration(50 * time.Microsecond), State: state},
			{A: &pb.Endpoint{Node: "s1", Port: 2}, B: &pb.Endpoint{Node: "h1"}, RateBps: 4e7, Delay: pb.Duration(time.Microsecond)},
		},
	}
}

func (s *server) Counted() []observed.Source { return nil }

func (s *server) HostParameters() []*pb.HostParameter { return nil }

func (s *server) Switch(string) (*pb.SwitchStatus, bool) { return &pb.SwitchStatus{}, false }

func (s *server) SwitchSummaries(string, bool) []*pb.SwitchStatus { return nil }

func (s *server) Switches() []*pb.SwitchStatus {
	return []*pb.SwitchStatus{
		{Name: "s1", DeviceId: 1, Address: "127.0.0.1:9559", State: pb.SwitchStatus_STATE_READY, Since: pb.Stamp(time.Now().Add(-90 * time.Second)), Entries: 12, Reconciles: 1,
			ElectionId: "7", Program: 0xab, Tables: []*pb.TableUse{{Name: "ingress.small", Entries: 3, Size: 4}, {Name: "ingress.large", Entries: 9, Size: 1024}, {Name: "open", Entries: 1}},
			Capabilities: []*pb.Capability{
				{Name: "qos.queue_limit", Supported: true, By: pb.ByProgram}, {Name: "buffer.dsh_estimate", Supported: true, By: pb.ByProgram},
				{Name: "register_read", Detail: "UNIMPLEMENTED"},
			},
			Ports: []*pb.PortStatus{{Port: 1, Peer: "s2", State: pb.PortStatus_STATE_UP}, {Port: 2, Peer: "h1"}}},
		{Name: "s2", DeviceId: 2, Address: "127.0.0.1:9560", State: pb.SwitchStatus_STATE_DISCONNECTED, Error: "connection refused\x1b[2J"},
		{Name: "s3", DeviceId: 3, Address: "127.0.0.1:9561", State: pb.SwitchStatus_STATE_READY, Capabilities: s.chip("127.0.0.1:50052")},
		{Name: "s4", DeviceId: 4, Address: "127.0.0.1:9562", State: pb.SwitchStatus_STATE_READY, Capabilities: s.chip("127.0.0.1:50053")},
	}
}

// chip is the capability of a switch with a traffic manager.
func (s *server) chip(manager string) []*pb.Capability {
	return []*pb.Capability{
		{Name: "qos.queue_limit", Supported: true, By: pb.ByTrafficManager, Detail: "the traffic manager holds the limit"},
		{Name: "buffer.dsh_estimate", Detail: "the program for tofino1 has no table ingress.buffer.buffer_policy; the policies dsh and dsh+spfc pause at their thresholds, not before by DSH's estimate"},
		{Name: "register_read", Detail: "UNIMPLEMENTED"},
		{Name: "traffic_manager", Supported: true, By: pb.ByTarget, Detail: "by BF Runtime at " + manager},
	}
}

func check(config []byte) error {
	if strings.Contains(string(config), "fast") {
		return &yamlnode.Error{File: "f.yaml", Faults: []yamlnode.Fault{{Line: 2, Field: "links[0].rate", Text: `"fast" is not a rate: want a number with a unit`}, {Line: 3, Field: "color", Text: "is not a known key"}}}
	}
	return nil
}

func (s *server) Plan(_ context.Context, _ string, config []byte, failures int) (*pb.PlanConfigResponse, error) {
	plan := &pb.PlanConfigResponse{Switches: []*pb.SwitchPlan{{Name: "s1"}, {Name: "s2"}}}
	if failures > 0 {
		plan.Notes = []string{fmt.Sprintf("with up to %d failed links: no cycle", failures)}
	}
	if err := check(config); err != nil || strings.Contains(string(config), "same") {
		return plan, err
	}
	plan.Switches = []*pb.SwitchPlan{
		{Name: "s1", Changes: []*pb.Change{{Kind: pb.Change_KIND_INSERT, Table: "route", Key: "10.0.0.0/24", New: "port 1"}, {Kind: pb.Change_KIND_MODIFY, Table: "queue", Key: "0", Old: "1MB", New: "2MB"}, {Kind: pb.Change_KIND_DELETE, Table: "route", Key: "10.0.1.0/24", Old: "port 2"}}},
		{Name: "s2", Unreachable: "connection refused", Notes: []string{"port 1 is paused until it has drained"}, Changes: []*pb.Change{{Kind: pb.Change_KIND_INSERT, Table: "route", Key: "10.0.0.0/24", New: "port 1"}}},
	}
	plan.Controller = []*pb.Change{{Kind: pb.Change_KIND_MODIFY, Table: "budget", Key: "web", Old: "3", New: "5"}}
	for _, p := range append(plan.Switches, &pb.SwitchPlan{Changes: plan.Controller}) {
		for _, c := range p.Changes {
			c.Text = c.Line()
		}
	}
	return plan, nil
}

func (s *server) Apply(ctx context.Context, file string, config []byte) (uint64, []*pb.SwitchResult, error) {
	if err := check(config); err != nil {
		return 0, nil, err
	}
	if err := history.NoteFromContext(ctx).Check(3); err != nil {
		return 0, nil, err
	}
	if err := s.history.Save(ctx, history.Entry{File: file, YAML: string(config), Generation: 4, Applied: time.Now()}); err != nil {
		return 0, nil, err
	}
	r := []*pb.SwitchResult{{Name: "s1", Inserted: 1, Modified: 1, Deleted: 1}, {Name: "s2", Inserted: 1}}
	if strings.Contains(string(config), "half") {
		r[1] = &pb.SwitchResult{Name: "s2", Error: "connection refused"}
	}
	return 4, r, nil
}

func (s *server) SetLink(_ context.Context, a, b string, up bool) error {
	if b == "s9" {
		return fmt.Errorf("%w %q and %q: %q has links to h1, s2", topology.ErrNoLink, a, b, a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = !up
	return nil
}

func get(ts *testscript.TestScript) *server { return ts.Value("server").(*server) }

// await waits until someone, or the given number of clients, follows events, samples or weights.
func await(ts *testscript.TestScript, _ bool, args []string) {
	s := get(ts)
	following := map[string]func() int{
		"events":  func() int { return s.events.Stats().Subscribers },
		"samples": func() int { return s.samples.Stats().Subscribers },
		"weights": func() int { return s.weights.Stats().Watchers },
	}[args[0]]
	want := 1
	if len(args) > 1 {
		var err error
		want, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); following() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("nobody follows %s", args[0])
		}
	}
}

// publish sends two samples, or an event.
func publish(ts *testscript.TestScript, _ bool, args []string) {
	s, start := get(ts), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if args[0] == "event" {
		s.events.Publish(&pb.Event{Time: pb.Stamp(start), Severity: pb.Event_SEVERITY_WARNING, Subject: args[1], Kind: args[2], Message: strings.Join(args[3:], " ")})
		return
	}
	for i := range 2 {
		s.samples.Publish(feature.Sample{
			Time: start.Add(time.Duration(i) * time.Second), Switch: "s1", Port: 2, Peer: "h1", QueueBytes: [8]uint32{0: 1000, 6: 500},
			QueueingDelay: 250 * time.Microsecond, DepartureBytes: uint64(i) * 5_000_000, Drops: 1,
		})
	}
}

// attach reports flows as host h1 and stays until the server stops.
func attach(ts *testscript.TestScript, _ bool, args []string) {
	s := get(ts)
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	ts.Check(err)
	ts.Defer(func() { _ = conn.Close() })
	stream, err := pb.NewHostServiceClient(conn).Attach(context.Background())
	ts.Check(err)
	report := &pb.HostReport{Host: "h1"}
	for i, app := range args {
		report.Flows = append(report.Flows, &pb.FlowReport{
			Flow:   &pb.FlowKey{SrcIpv4: "10.0.0.1", SrcPort: uint32(1001 + i), DstIpv4: "10.0.0.2", DstPort: 50151},
			Weight: 2, Application: app, RateBps: 20_000_000, AckedBytes: 1_500_000, MaxQd: durationpb.New(3000), Rtt: durationpb.New(120_000), Retransmits: 4,
		})
	}
	ts.Check(stream.Send(report))
	_, err = stream.Recv() // the first weight: the server has taken the report
	ts.Check(err)
}
