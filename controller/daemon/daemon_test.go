package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/tests/switchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lonely is a fabric whose only switch cannot be reached.
func lonely(t *testing.T, listen string, budget int) (string, *config.Config) {
	t.Helper()
	yaml := fmt.Sprintf(`
name: lonely
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:1"}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
links:
  - {a: "s1:1", b: h1, rate: 10Mbps}
applications:
  - {name: web, budget: %d}
controller: {listen: "%s", metrics: "127.0.0.1:0"}
`, budget, listen)
	cfg, err := config.Parse("lonely.yaml", []byte(yaml), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return yaml, cfg
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", switchtest.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, cfg := lonely(t, l.Addr().String(), 10)
	err = Run(context.Background(), Options{Config: cfg, Loopback: authz.Admin})
	if want := fmt.Sprintf("controller.listen %q", l.Addr()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Run = %v, want an error with %s", err, want)
	}
}

// freePort returns an address without a listener.
func freePort(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().String()
}

// serve runs a daemon until the test ends, or until the returned function is called.
func serve(t *testing.T, o Options) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	if o.Socket == "" {
		o.Socket = filepath.Join(t.TempDir(), "api.sock")
	}
	o.Log = slog.New(slog.DiscardHandler)
	switch o.Loopback {
	case "":
		o.Loopback = authz.Viewer
	case "none":
		o.Loopback = ""
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	conn, err := grpc.NewClient("unix:"+o.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return conn, stop
}

// The daemon runs without the switch and serves the API on its Unix socket once a configuration is
// in force. It refuses a configuration as a whole if its budgets do not fit the weights in use.
func TestBudgetsOfConfigurations(t *testing.T) {
	address := freePort(t)
	_, cfg := lonely(t, address, 10)
	conn, _ := serve(t, Options{Config: cfg})
	ctx := t.Context()
	fabric, weights := pb.NewFabricServiceClient(conn), pb.NewWeightServiceClient(conn)
	if l, err := fabric.ListSwitches(ctx, &pb.ListSwitchesRequest{}); err != nil || len(l.Switches) != 1 {
		t.Fatalf("the first answer: %v, %v", l, err)
	}
	flow := &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: 1000, DstPort: 50151}
	if _, err := weights.SetWeight(ctx, &pb.SetWeightRequest{Flow: flow, Weight: 8, Application: "web"}); err != nil {
		t.Fatal(err)
	}
	wider, _ := lonely(t, address, 12)
	p, err := fabric.PlanConfig(ctx, &pb.PlanConfigRequest{Config: wider})
	if err != nil || !slices.ContainsFunc(p.GetController(), func(c *pb.Change) bool {
		return c.GetKind() == pb.Change_KIND_MODIFY && c.GetTable() == "budget" && c.GetKey() == "web" && c.GetOld() == "10" && c.GetNew() == "12"
	}) {
		t.Errorf("the plan of a wider budget: %v, %v", p.GetController(), err)
	}
	tight, _ := lonely(t, address, 5)
	for name, call := range map[string]func() error{
		"plan":  func() error { _, err := fabric.PlanConfig(ctx, &pb.PlanConfigRequest{Config: tight}); return err },
		"apply": func() error { _, err := fabric.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: tight}); return err },
	} {
		if err := call(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "applications") {
			t.Errorf("%s with a budget below what is in use: %v, want InvalidArgument about applications", name, err)
		}
	}
	if g, err := fabric.GetFabric(ctx, &pb.GetFabricRequest{}); err != nil || g.Generation != 1 {
		t.Errorf("after a refused apply: generation %v, %v; want 1", g.GetGeneration(), err)
	}
	list, err := weights.ListWeights(ctx, &pb.ListWeightsRequest{})
	if err != nil || len(list.Budgets) != 1 || list.Budgets[0].Limit != 10 {
		t.Errorf("budgets after a refused apply: %v, %v; want web 10", list.GetBudgets(), err)
	}
}

// TestReadiness: with a dead switch the process is healthy but not ready.
func TestReadiness(t *testing.T) {
	text, _ := lonely(t, freePort(t), 10)
	metrics := freePort(t)
	cfg, err := config.Parse("lonely.yaml", []byte(strings.Replace(text, `"127.0.0.1:0"`, strconv.Quote(metrics), 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := serve(t, Options{Config: cfg})
	if _, err := pb.NewFabricServiceClient(conn).GetFabric(t.Context(), &pb.GetFabricRequest{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/healthz": "200 ok\n",
		"/readyz":  "503 state store: ok\nconfiguration: ok\nswitch s1: disconnected: ",
	} {
		// The check has a connection of its own, so that it leaves nothing open.
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get("http://" + metrics + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := fmt.Sprint(answer.StatusCode, " ", string(body)); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}

// Another noise or flows value moves every channel. A configuration is refused as a whole if it
// lacks a priority that is allocated.
func TestChannelsOfConfigurations(t *testing.T) {
	base, _ := lonely(t, freePort(t), 10)
	with := func(section string) string { return base + "prioplus: " + section + "\n" }
	cfg, err := config.Parse("lonely.yaml", []byte(with("{base_rtt: 12us, priorities: 4}")), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := serve(t, Options{Config: cfg})
	ctx := t.Context()
	fabric, channels := pb.NewFabricServiceClient(conn), pb.NewPriorityServiceClient(conn)
	watch, err := channels.WatchPriorities(ctx, &pb.WatchPrioritiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	until := func(what string, ok func(*pb.ListPrioritiesResponse) bool) *pb.ListPrioritiesResponse {
		t.Helper()
		for {
			m, err := watch.Recv()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if ok(m) {
				return m
			}
		}
	}
	first := until("the plan of the file", func(m *pb.ListPrioritiesResponse) bool { return m.Plan.GetFlows() == 150 && len(m.Channels) == 4 })
	if _, err := channels.AllocatePriority(ctx, &pb.AllocatePriorityRequest{Application: "web", Priority: 3}); err != nil {
		t.Fatal(err)
	}
	apply := func(section string) error {
		_, err := fabric.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: with(section)})
		return err
	}
	if err := apply("{base_rtt: 12us, priorities: 4, flows: 300, noise: 2us}"); err != nil {
		t.Fatal(err)
	}
	next := until("300 flows", func(m *pb.ListPrioritiesResponse) bool { return m.Plan.GetFlows() == 300 })
	if a, b := first.Channels[2], next.Channels[2]; next.Plan.Noise.AsDuration() != 2000 || b.Application != "web" || b.Target.AsDuration() < a.Target.AsDuration()+3*3000 {
		t.Errorf("priority 3 was %v, with twice the flows and more noise it is %v", a, b)
	}
	for name, section := range map[string]string{"two priorities": "{base_rtt: 12us, priorities: 2}", "a faulty one": "{base_rtt: 0s}"} {
		if err := apply(section); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "prioplus.") {
			t.Errorf("%s: %v, want InvalidArgument about prioplus", name, err)
		}
	}
	if _, err := fabric.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: base}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `application "web" has priority 3`) {
		t.Errorf("no section: %v", err)
	}
	if l, err := channels.ListPriorities(ctx, &pb.ListPrioritiesRequest{}); err != nil || l.Plan.GetFlows() != 300 || len(l.Channels) != 4 {
		t.Errorf("after refused configurations: %v, %v", l, err)
	}
}
