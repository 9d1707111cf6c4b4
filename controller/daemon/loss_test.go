package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/tests/smalldisk"
)

// kept is a configuration whose state is kept in a folder.
func kept(t *testing.T, dir string, budget int) *config.Config {
	t.Helper()
	text, _ := lonely(t, freePort(t), budget)
	text = strings.Replace(text, "controller: {", fmt.Sprintf("controller: {state: %q, ", filepath.Join(dir, "state.db")), 1)
	cfg, err := config.Parse("lonely.yaml", []byte(text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func setWeight(ctx context.Context, conn *grpc.ClientConn, port int) error {
	flow := &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: uint32(port), DstPort: 50151}
	_, err := pb.NewWeightServiceClient(conn).SetWeight(ctx, &pb.SetWeightRequest{Flow: flow, Weight: 0.001, Application: "web"})
	return err
}

// TestDiskFull: a controller with a full disk reads and serves, and gives the reason why it refuses changes, until
// there is room. After a restart it does the same, also with another fabric file.
func TestDiskFull(t *testing.T) {
	disk := smalldisk.New(t, 4<<20)
	conn, stop := serve(t, Options{Config: kept(t, disk.Dir, 10)})
	if err := setWeight(t.Context(), conn, 1); err != nil {
		t.Fatal(err)
	}
	refused := func() (port int) {
		t.Helper()
		for port = 2; port < 1000; port++ { // the file may have room of its own
			if err := setWeight(t.Context(), conn, port); err != nil {
				if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), "nothing was changed") {
					t.Errorf("a change on a full disk: %v", err)
				}
				return port
			}
		}
		t.Fatal("a full disk takes 1000 changes")
		return 0
	}
	reads := func(flows int) {
		t.Helper()
		r, err := pb.NewWeightServiceClient(conn).ListWeights(t.Context(), &pb.ListWeightsRequest{})
		if err != nil || len(r.GetFlows()) != flows {
			t.Errorf("it reads %d flows, %v, want %d", len(r.GetFlows()), err, flows)
		}
		f, err := pb.NewFabricServiceClient(conn).GetFabric(t.Context(), &pb.GetFabricRequest{})
		if err != nil || f.GetGeneration() != 1 || !strings.Contains(f.GetConfig(), "budget: 10}") {
			t.Errorf("it reads generation %d, %v", f.GetGeneration(), err)
		}
	}
	disk.Fill(t)
	flows := refused() - 1
	reads(flows)
	stop()
	conn, stop = serve(t, Options{Config: kept(t, disk.Dir, 11)})
	reads(flows)
	if refused() > flows+1 {
		t.Error("a change was made after the restart")
	}
	disk.Free(t)
	if err := setWeight(t.Context(), conn, 2000); err != nil {
		t.Errorf("with room again: %v", err)
	}
	reads(flows + 1)
	stop()
}

// TestAcceptLoss: the start is refused if the state is damaged, or if state or audit log is older than the other; the
// error names the missing generation. With --accept-loss the controller starts, and the audit log and an event record
// the loss.
func TestAcceptLoss(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(state, older string) error
		want string
	}{
		{"older state", func(state, older string) error { return os.Rename(older, state) }, "generation 2 was applied last; the file has generation 1"},
		{"cut state", func(state, _ string) error { return os.Truncate(state, 9000) }, "generation 2 was applied last"},
		{"no audit log", func(state, _ string) error {
			return errors.Join(os.Remove(state+".audit"), os.Remove(state+".audit.head"))
		}, "as the state file says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			state, older := filepath.Join(dir, "state.db"), filepath.Join(dir, "older")
			_, stop := serve(t, Options{Config: kept(t, dir, 10)})
			stop()
			data, err := os.ReadFile(state)
			if err := errors.Join(err, os.WriteFile(older, data, 0o600)); err != nil {
				t.Fatal(err)
			}
			conn, stop := serve(t, Options{Config: kept(t, dir, 11)})
			if err := setWeight(t.Context(), conn, 1); err != nil {
				t.Fatal(err)
			}
			stop()
			if err := c.do(state, older); err != nil {
				t.Fatal(err)
			}
			err = Run(t.Context(), Options{Config: kept(t, dir, 11), Loopback: authz.Admin})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--accept-loss") {
				t.Fatalf("%v, want %q", err, c.want)
			}
			conn, stop = serve(t, Options{Config: kept(t, dir, 11), AcceptLoss: true})
			r, err := pb.NewWeightServiceClient(conn).ListAudit(t.Context(), &pb.ListAuditRequest{})
			said := false
			for _, e := range r.GetEntries() {
				said = said || e.GetWhat() == "accept loss" && e.GetSubject() == state
			}
			if err != nil || !said {
				t.Errorf("the audit log does not say so: %v, %v", r, err)
			}
			watch, err := pb.NewFabricServiceClient(conn).WatchEvents(t.Context(), &pb.WatchEventsRequest{Recent: 100})
			for err == nil {
				var e *pb.Event
				if e, err = watch.Recv(); e.GetKind() == "state.loss" {
					break
				}
			}
			if err != nil {
				t.Errorf("no event says so: %v", err)
			}
			stop()
			_, stop = serve(t, Options{Config: kept(t, dir, 11)}) // the next start needs no flag
			stop()
		})
	}
}
