package daemon

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
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
	cfg, err := config.Reparse("lonely.yaml", []byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	return yaml, cfg
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, cfg := lonely(t, l.Addr().String(), 10)
	err = Run(context.Background(), Options{Config: cfg})
	if want := fmt.Sprintf("controller.listen %q", l.Addr()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Run = %v, want an error with %s", err, want)
	}
}

// The daemon goes on without the switch, serves the API on its Unix socket, and refuses
// whole a configuration whose budgets do not fit the weights in use.
func TestBudgetsOfConfigurations(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	_, cfg := lonely(t, address, 10)
	socket := filepath.Join(t.TempDir(), "api.sock")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Config: cfg, Socket: socket}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fabric, weights := pb.NewFabricServiceClient(conn), pb.NewWeightServiceClient(conn)
	for {
		g, err := fabric.GetFabric(ctx, &pb.GetFabricRequest{}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		if g.Generation == 1 {
			break
		}
	}
	flow := &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: 1000, DstPort: 50151}
	if _, err := weights.SetWeight(ctx, &pb.SetWeightRequest{Flow: flow, Weight: 8, Application: "web"}); err != nil {
		t.Fatal(err)
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
