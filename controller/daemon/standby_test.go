package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/serving/northbound"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/tests/etcdtest"
)

// TestStandbyAnswers: while the leader is frozen, a follower answers from the members' shared state, as the
// leader would. It refuses calls that only the leader may or can answer.
func TestStandbyAnswers(t *testing.T) {
	etcd, frozen := etcdtest.Start(t, etcdtest.Options{}), freePort(t)
	cfg := clustered(t, fmt.Sprintf("cluster: {etcd: [%q], members: [{name: c1, relay: %q}, {name: c2, relay: %q}, {name: c3, relay: %q}]}", etcd, frozen, freePort(t), freePort(t)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c1, stop := serve(t, Options{Config: cfg, Member: "c1", Loopback: authz.Admin})
	until(t, func(ctx context.Context) error {
		_, err := pb.NewWeightServiceClient(c1).SetWeight(ctx, &pb.SetWeightRequest{Flow: &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: 1000, DstPort: 50151}, Weight: 3, Application: "web"})
		return err
	})
	if _, err := pb.NewFabricServiceClient(c1).SetLink(ctx, &pb.SetLinkRequest{A: "s1", B: "h1"}); err != nil {
		t.Fatal(err)
	}
	stop()

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Put(ctx, "/headgate/leader/1", "c1"); err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", frozen) // the kernel accepts connections, and nobody reads from them
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	admin, _ := serve(t, Options{Config: cfg, Member: "c2", Loopback: authz.Admin})
	for { // until it knows the leader
		r, err := pb.NewFabricServiceClient(admin).GetFabric(ctx, &pb.GetFabricRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if r.GetMember() == "" {
			continue
		}
		if l := r.GetLinks(); r.GetMember() != "c1" || r.GetGeneration() != 1 || r.GetName() != "lonely" || len(r.GetSwitches()) != 1 || len(l) != 1 || l[0].GetState() != pb.PortStatus_STATE_DOWN {
			t.Errorf("the fabric is %v", r)
		}
		break
	}
	var header metadata.MD
	if r, err := pb.NewFabricServiceClient(admin).ListHistory(ctx, &pb.ListHistoryRequest{Generation: 1}, grpc.Header(&header)); err != nil || r.GetConfigs()[0].GetConfig() != string(cfg.Source) || header.Get(northbound.AnsweredBy)[0] != "c2" {
		t.Errorf("generation 1 is %v, %v, by %v", r, err, header)
	}
	if _, err := pb.NewFabricServiceClient(admin).ListHistory(ctx, &pb.ListHistoryRequest{Generation: 2}); status.Code(err) != codes.NotFound {
		t.Errorf("generation 2: %v", err)
	}
	if r, err := pb.NewWeightServiceClient(admin).ListWeights(ctx, &pb.ListWeightsRequest{}); err != nil || len(r.GetFlows()) != 1 || r.GetFlows()[0].GetWeight() != 3 || len(r.GetBudgets()) != 1 || r.GetBudgets()[0].GetLimit() != 10 || r.GetBudgets()[0].GetUsed() != 3 {
		t.Errorf("weights are %v, %v", r, err)
	}
	if r, err := pb.NewWeightServiceClient(admin).ListAudit(ctx, &pb.ListAuditRequest{}); err != nil || len(r.GetEntries()) < 3 {
		t.Errorf("the audit log is %v, %v", r, err)
	}
	if r, err := pb.NewPriorityServiceClient(admin).ListPriorities(ctx, &pb.ListPrioritiesRequest{}); err != nil || len(r.GetChannels()) != 0 {
		t.Errorf("priorities are %v, %v", r, err)
	}
	// A call that only the leader can answer goes to the leader.
	short, done := context.WithTimeout(ctx, time.Second/2)
	defer done()
	if _, err := pb.NewFabricServiceClient(admin).ListSwitches(short, &pb.ListSwitchesRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("switches: %v", err)
	}
}

// TestRestoreIsRefused: a backup is refused by a cluster that has already started without one.
func TestRestoreIsRefused(t *testing.T) {
	cfg := alone(t, etcdtest.Start(t, etcdtest.Options{}), freePort(t))
	conn, stop := serve(t, Options{Config: cfg, Member: "c1", Loopback: authz.Admin})
	until(t, func(ctx context.Context) error {
		_, err := pb.NewFabricServiceClient(conn).ListSwitches(ctx, &pb.ListSwitchesRequest{})
		return err
	})
	stop()
	backup := filepath.Join(t.TempDir(), "backup")
	db, err := store.Open(backup, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.SaveLinks(map[string]bool{"l": true}, nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = Run(ctx, Options{Config: cfg, Member: "c1", Restore: backup, Loopback: authz.Admin})
	for _, want := range []string{"--restore " + backup, "generation 1 from alone.yaml", "without --restore"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run: %v, want %q in it", err, want)
		}
	}
}
