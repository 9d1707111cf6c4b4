package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	etcdpb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/internal/testcert"
	"github.com/headgate/headgate/tests/etcdtest"
	"github.com/headgate/headgate/tests/switchtest"
)

// alone is the only member of a cluster with an external etcd.
func alone(t *testing.T, etcd, relay string, replace ...string) *config.Config {
	t.Helper()
	return clustered(t, fmt.Sprintf("cluster: {etcd: [%q], members: [{name: c1, relay: %q}]}", etcd, relay), replace...)
}

func clustered(t *testing.T, cluster string, replace ...string) *config.Config {
	t.Helper()
	text, _ := lonely(t, "127.0.0.1:0", 10)
	text = strings.TrimSuffix(strings.TrimSpace(text), "}") + ", " + cluster + "}\n"
	cfg, err := config.Parse("alone.yaml", []byte(strings.NewReplacer(replace...).Replace(text)), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestStateCannotBeRead: a leader that cannot read the state gives up leadership and stands for
// election again, after waits that grow, until a member can read it.
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
	conn, _ := serve(t, Options{Config: alone(t, etcd, freePort(t)), Member: "c1", Loopback: authz.Admin})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for { // each change of role ends the calls in progress
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
		// Half of each wait is random.
		if least := firstPause << (i - 1) / 2; asked[i].Sub(asked[i-1]) < least {
			t.Errorf("after failure %d the state was read again within %v, want %v or more", i, asked[i].Sub(asked[i-1]), least)
		}
	}
}

// TestWhyALeadEnds: the log gives the reason why leadership ended, also if the member gave it up by
// itself.
func TestWhyALeadEnds(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var log strings.Builder
	err = Run(t.Context(), Options{
		Config: alone(t, etcdtest.Start(t, etcdtest.Options{}), taken.Addr().String()), Member: "c1", Loopback: authz.Admin,
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

// TestClusterMadeAnew: a new cluster, empty or with an older backup, takes over switches that know higher terms,
// and so does each later leader. It takes no switch from a running controller.
func TestClusterMadeAnew(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	cfg := alone(t, etcdtest.Start(t, etcdtest.Options{}), freePort(t), `"127.0.0.1:1"`, fmt.Sprintf("%q, target: embedded", s.Address()))
	before, leave := context.WithCancel(t.Context())
	has := make(chan session.Role, 10)
	old := session.New(session.Options{Name: "s1", DeviceID: 1, Address: s.Address(), ElectionID: 1, Terms: lostTerms{}}, roles(has))
	var wg sync.WaitGroup
	wg.Go(func() { _ = old.Run(before) })
	defer wg.Wait()
	defer leave()
	for r := range has {
		if r == session.Primary {
			break
		}
	}
	is := func(conn *grpc.ClientConn, want pb.SwitchStatus_State) {
		t.Helper()
		until(t, func(ctx context.Context) error {
			r, err := pb.NewFabricServiceClient(conn).ListSwitches(ctx, &pb.ListSwitchesRequest{})
			if err == nil && r.GetSwitches()[0].GetState() != want {
				time.Sleep(10 * time.Millisecond)
				err = fmt.Errorf("the switch is %v (%s)", r.GetSwitches()[0].GetState(), r.GetSwitches()[0].GetError())
			}
			return err
		})
	}
	conn, stop := serve(t, Options{Config: cfg, Member: "c1", Loopback: authz.Admin})
	is(conn, pb.SwitchStatus_STATE_BACKUP)
	leave()
	is(conn, pb.SwitchStatus_STATE_READY)
	stop()
	conn, _ = serve(t, Options{Config: cfg, Member: "c1", Loopback: authz.Admin})
	is(conn, pb.SwitchStatus_STATE_READY)
}

// lostTerms are the terms of a leader whose cluster was lost.
type lostTerms struct{}

func (lostTerms) Term() uint64                     { return 1 << 50 }
func (lostTerms) RaiseTerm(uint64) (uint64, error) { return 0, errors.New("it leads no more") }

// roles takes a session's roles.
type roles chan session.Role

func (r roles) Role(role session.Role, _ error)   { r <- role }
func (roles) Message(*p4v1.StreamMessageResponse) {}
func (roles) PacketRefused(error)                 {}

// until repeats a call until it succeeds: calls in progress end when a member becomes leader.
func until(t *testing.T, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		one, done := context.WithTimeout(ctx, 5*time.Second)
		err := call(one)
		done()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestOutsideEtcd: members find each other in an external etcd, over TLS with certificates on both
// sides. The next leader has the last one's writes, and so has a new cluster that starts with a
// backup.
func TestOutsideEtcd(t *testing.T) {
	ca := testcert.New(t, t.TempDir())
	ca.Issue(t, "member", "member")
	ca.Issue(t, "etcd", "etcd")
	secure := &tls.Config{Certificates: []tls.Certificate{ca.Pair(t, "etcd")}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}}
	conf := func(etcd string) *config.Config {
		return clustered(t, fmt.Sprintf("files: [%q], cluster: {etcd: [%q], tls: {ca: ca.pem, cert: member.pem, key: member.key}, members: [{name: c1, relay: %q}, {name: c2, relay: %q}, {name: c3, relay: %q}]}",
			ca.Dir, etcd, freePort(t), freePort(t), freePort(t)))
	}
	etcd := etcdtest.Start(t, etcdtest.Options{TLS: secure})
	cfg := conf(etcd)
	flow := &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: 1000, DstPort: 50151}
	set := func(conn *grpc.ClientConn, weight float64) {
		t.Helper()
		until(t, func(ctx context.Context) error {
			_, err := pb.NewWeightServiceClient(conn).SetWeight(ctx, &pb.SetWeightRequest{Flow: flow, Weight: weight, Application: "web"})
			return err
		})
	}
	weight := func(conn *grpc.ClientConn) (weight float64) {
		t.Helper()
		until(t, func(ctx context.Context) error {
			r, err := pb.NewWeightServiceClient(conn).ListWeights(ctx, &pb.ListWeightsRequest{})
			for _, f := range r.GetFlows() {
				weight = f.GetWeight()
			}
			return err
		})
		return weight
	}
	c1, stop := serve(t, Options{Config: cfg, Member: "c1", Loopback: authz.Admin})
	set(c1, 3)
	c2, stop2 := serve(t, Options{Config: cfg, Member: "c2", Loopback: authz.Admin})
	if w := weight(c2); w != 3 {
		t.Errorf("the member that stands by says %v", w)
	}
	if _, err := pb.NewStateServiceClient(c1).ReplaceMember(t.Context(), &pb.ReplaceMemberRequest{Name: "c3"}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "others run") {
		t.Errorf("replace a member of no etcd: %v", err)
	}
	stop()
	if w := weight(c2); w != 3 {
		t.Errorf("the next leader says %v", w)
	}
	set(c2, 4)

	stream, err := pb.NewStateServiceClient(c2).BackupState(t.Context(), &pb.BackupStateRequest{})
	var text []byte
	for err == nil {
		var p *pb.StatePart
		p, err = stream.Recv()
		text = append(text, p.GetText()...)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if sum, err := store.Take(text, backup); err != nil || sum.Flows != 1 || sum.Config.Generation != 1 {
		t.Fatalf("the backup has %v, %v", sum, err)
	}
	if _, err := store.Take(text[:len(text)/2], backup+"2"); err == nil {
		t.Error("half of a backup was taken")
	}
	set(c2, 5)
	stop2()

	etcd = etcdtest.Start(t, etcdtest.Options{TLS: secure})
	c3, stop := serve(t, Options{Config: conf(etcd), Member: "c3", Restore: backup, Loopback: authz.Admin})
	if w := weight(c3); w != 4 {
		t.Errorf("the restored cluster says %v", w)
	}
	set(c3, 6)
	stop()
	c3, _ = serve(t, Options{Config: conf(etcd), Member: "c3", Restore: backup, Loopback: authz.Admin})
	if w := weight(c3); w != 6 {
		t.Errorf("after a restart with the same flags it says %v", w)
	}
}
