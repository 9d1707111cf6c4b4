package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	etcdpb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/access"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/tests/etcdtest"
)

// alone is the only member of a cluster whose etcd is elsewhere.
func alone(t *testing.T, etcd, relay string) *config.Config {
	t.Helper()
	text, _ := lonely(t, "127.0.0.1:0", 10)
	text = strings.TrimSuffix(strings.TrimSpace(text), "}") +
		fmt.Sprintf(", cluster: {etcd: [%q], members: [{name: c1, relay: %q}]}}\n", etcd, relay)
	cfg, err := config.Parse("alone.yaml", []byte(text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestStateCannotBeRead: a leader that cannot read the state gives the lead up, and stands for election
// again after waits that grow, until one of them can read it.
func TestStateCannotBeRead(t *testing.T) {
	const failures = 3
	var mu sync.Mutex
	var asked []time.Time
	etcd := etcdtest.Start(t, etcdtest.Options{Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if r, ok := req.(*etcdpb.RangeRequest); ok && string(r.GetKey()) == "/headgate/epoch" {
			mu.Lock()
			defer mu.Unlock()
			if asked = append(asked, time.Now()); len(asked) <= failures {
				return nil, status.Error(codes.DataLoss, "the disk is worn out")
			}
		}
		return next(ctx, req)
	}})
	conn, _ := serve(t, Options{Config: alone(t, etcd, freePort(t)), Member: "c1", Loopback: access.Admin})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for { // each change between standing by and leading ends the calls that are under way
		r, err := pb.NewFabricServiceClient(conn).GetFabric(ctx, &pb.GetFabricRequest{})
		if err == nil && r.GetMember() == "c1" {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%q leads, %v", r.GetMember(), err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i <= failures; i++ {
		// Half of each wait is left to chance.
		if least := firstPause << (i - 1) / 2; asked[i].Sub(asked[i-1]) < least {
			t.Errorf("after failure %d the state was read again within %v, want %v or more", i, asked[i].Sub(asked[i-1]), least)
		}
	}
}

// TestWhyALeadEnds: the log says why a lead ended, also where the member gave it up by itself.
func TestWhyALeadEnds(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var log strings.Builder
	err = Run(t.Context(), Options{
		Config: alone(t, etcdtest.Start(t, etcdtest.Options{}), taken.Addr().String()), Member: "c1", Loopback: access.Admin,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("Run: %v", err)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "does not lead the cluster any more") {
			if !strings.Contains(line, "address already in use") {
				t.Errorf("the log says %s", line)
			}
			return
		}
	}
	t.Errorf("the log does not say that the lead ended:\n%s", log.String())
}
