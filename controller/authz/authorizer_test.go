package authz_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/internal/testcert"
)

const policy = `
grants:
  - {who: "spiffe://lab/ops/*", role: operator}
  - {who: "spiffe://lab/host/*", role: host}
  - {who: "cn:web", role: application, applications: [web]}
  - {who: "token:ci", role: viewer}
  - {who: "cn:root", role: admin}
tokens: tokens
`

func flow(port uint32) *pb.FlowKey {
	return &pb.FlowKey{SrcIpv4: "10.0.0.1", DstIpv4: "10.0.0.2", SrcPort: port, DstPort: 50151}
}

// calls has one call of each kind.
var calls = map[string]func(ctx context.Context, c *grpc.ClientConn) error{
	"get": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := pb.NewFabricServiceClient(c).GetFabric(ctx, &pb.GetFabricRequest{})
		return err
	},
	"apply": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := pb.NewFabricServiceClient(c).ApplyConfig(ctx, &pb.ApplyConfigRequest{})
		return err
	},
	"weigh": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := pb.NewWeightServiceClient(c).SetWeight(ctx, &pb.SetWeightRequest{Flow: flow(1), Weight: 1, Application: "web"})
		return err
	},
	"weigh another's": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := pb.NewWeightServiceClient(c).SetWeights(ctx, &pb.SetWeightsRequest{Weights: []*pb.SetWeightRequest{
			{Flow: flow(1), Weight: 1, Application: "web"}, {Flow: flow(2), Weight: 1, Application: "shop"},
		}})
		return err
	},
	"attach h1": attach("h1"),
	"attach h2": attach("h2"),
	"health": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	},
	"reflect": func(ctx context.Context, c *grpc.ClientConn) error {
		s, err := reflectpb.NewServerReflectionClient(c).ServerReflectionInfo(ctx)
		if err != nil {
			return err
		}
		_ = s.Send(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}) // Recv has the error
		_, err = s.Recv()
		return err
	},
	"nothing": func(ctx context.Context, c *grpc.ClientConn) error {
		return c.Invoke(ctx, "/headgate.v1.FabricService/Nothing", &pb.GetFabricRequest{}, &pb.GetFabricResponse{})
	},
}

func attach(host string) func(context.Context, *grpc.ClientConn) error {
	return func(ctx context.Context, c *grpc.ClientConn) error {
		s, err := pb.NewHostServiceClient(c).Attach(ctx)
		if err != nil {
			return err
		}
		_ = s.Send(&pb.HostReport{Host: host}) // Recv has the error
		_, err = s.Recv()
		return err
	}
}

func code(t *testing.T, c *grpc.ClientConn, call string) codes.Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := calls[call](ctx, c)
	want := map[codes.Code]string{codes.Unauthenticated: pb.ReasonNotAuthenticated, codes.PermissionDenied: pb.ReasonNotPermitted}[status.Code(err)]
	if reason, _ := pb.Reason(err); reason != want {
		t.Errorf("%s: reason %q of %v, want %q", call, reason, err, want)
	}
	return status.Code(err)
}

// TestWhoMayDoWhat uses real connections: each kind of credential, and one call of each kind.
func TestWhoMayDoWhat(t *testing.T) {
	r := start(t, "", policy)
	r.Issue(t, "alice", "somebody", "spiffe://lab/ops/alice")
	r.Issue(t, "h1", "", "spiffe://lab/host/h1")
	r.Issue(t, "web", "web")
	r.Issue(t, "root", "root")
	r.Issue(t, "two", "root", "spiffe://lab/ops/alice", "spiffe://lab/ops/bob")
	r.Issue(t, "other", "alice")
	evil := testcert.New(t, t.TempDir())
	evil.Issue(t, "root", "root")

	const ok, denied, unknown = codes.OK, codes.PermissionDenied, codes.Unauthenticated
	for _, c := range []struct {
		who  string
		want map[string]codes.Code
	}{
		{"alice", map[string]codes.Code{"get": ok, "apply": ok, "weigh": ok, "weigh another's": ok, "attach h1": denied, "reflect": ok, "health": ok, "nothing": codes.Unimplemented}},
		{"h1", map[string]codes.Code{"get": denied, "apply": denied, "weigh": denied, "attach h1": ok, "attach h2": denied}},
		{"web", map[string]codes.Code{"get": denied, "weigh": ok, "weigh another's": denied, "attach h1": denied, "reflect": denied}},
		{"token " + bearer, map[string]codes.Code{"get": ok, "apply": denied, "weigh": denied, "reflect": ok}},
		{"token " + bearer + "x", map[string]codes.Code{"get": unknown, "health": unknown}},
		{"root", map[string]codes.Code{"get": ok, "apply": ok, "attach h1": ok, "attach h2": ok}},
		{"two", map[string]codes.Code{"get": unknown, "health": ok}},
		{"other", map[string]codes.Code{"get": denied, "reflect": denied, "nothing": codes.Unimplemented}},
		{"stranger", map[string]codes.Code{"get": unknown, "apply": unknown, "attach h1": unknown, "reflect": unknown, "health": ok}},
		{"unix", map[string]codes.Code{"get": ok, "apply": ok, "attach h2": ok}}, // the test's own user
		{"plain", map[string]codes.Code{"get": denied, "apply": denied, "attach h1": denied, "reflect": denied, "health": ok}},
	} {
		conn := r.as(t, c.who)
		for call, want := range c.want {
			if got := code(t, conn, call); got != want {
				t.Errorf("%s, %s: %v, want %v", c.who, call, got, want)
			}
		}
	}
	// A certificate that another authority signed ends the handshake.
	r.Dir, evil.Dir = evil.Dir, r.Dir
	conn := func() *grpc.ClientConn {
		defer func() { r.Dir, evil.Dir = evil.Dir, r.Dir }()
		return r.as(t, "root")
	}()
	if got := code(t, conn, "get"); got != codes.Unavailable {
		t.Errorf("a certificate of another authority: %v", got)
	}
	refused := map[string]string{}
	for _, e := range r.audit.List("", 1000) {
		if e.What == audit.Denied {
			refused[e.Identity+" "+e.Subject] = e.Refused
		}
	}
	for _, want := range []string{"cn:alice /headgate.v1.FabricService/GetFabric", " /headgate.v1.FabricService/GetFabric", "cn:alice unknown", "spiffe://lab/host/h1 /headgate.v1.HostService/Attach"} {
		if refused[want] == "" {
			t.Errorf("the audit log lacks %q: %v", want, refused)
		}
	}
}

// TestFlowsOfOthers: an application cannot change or delete another application's flow, whatever
// name it gives.
func TestFlowsOfOthers(t *testing.T) {
	r := start(t, "", policy)
	r.Issue(t, "web", "web")
	r.Issue(t, "root", "root")
	ctx := t.Context()
	root, web := pb.NewWeightServiceClient(r.as(t, "root")), pb.NewWeightServiceClient(r.as(t, "web"))
	if _, err := root.SetWeight(ctx, &pb.SetWeightRequest{Flow: flow(9), Weight: 5, Application: "shop"}); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"take": func() error {
			_, err := web.SetWeight(ctx, &pb.SetWeightRequest{Flow: flow(9), Weight: 1, Application: "web"})
			return err
		},
		"delete":  func() error { _, err := web.DeleteFlow(ctx, &pb.DeleteFlowRequest{Flow: flow(9)}); return err },
		"unnamed": func() error { _, err := web.SetWeight(ctx, &pb.SetWeightRequest{Flow: flow(8), Weight: 1}); return err },
		"list":    func() error { _, err := web.ListWeights(ctx, &pb.ListWeightsRequest{}); return err },
	} {
		if err := call(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v, want PermissionDenied", name, err)
		}
	}
	if list := r.weights.Flows(""); len(list) != 1 || list[0].Application != "shop" || list[0].Weight.Float() != 5 {
		t.Errorf("flows are %v", list)
	}
}

// TestPolicyChange: a policy with fewer rights ends the streams that it no longer allows, and
// leaves the others.
func TestPolicyChange(t *testing.T) {
	r := start(t, "", policy)
	r.Issue(t, "h1", "", "spiffe://lab/host/h1")
	r.Issue(t, "alice", "", "spiffe://lab/ops/alice")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	host, err := pb.NewHostServiceClient(r.as(t, "h1")).Attach(ctx)
	if err == nil {
		err = host.Send(&pb.HostReport{Host: "h1"})
	}
	if err == nil {
		_, err = host.Recv() // the parameters
	}
	if err != nil {
		t.Fatal(err)
	}
	alice := r.as(t, "alice")
	watch, err := pb.NewWeightServiceClient(alice).WatchWeights(ctx, &pb.WatchWeightsRequest{})
	for range 2 {
		if err == nil {
			_, err = watch.Recv() // full, synced
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, "policy.yaml", strings.Replace(policy, "spiffe://lab/ops/*", "spiffe://lab/ops/bob", 1))
	if err := r.apply(); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the stream of one without a role: %v", err)
	}
	if got := code(t, alice, "get"); got != codes.PermissionDenied {
		t.Errorf("its next call: %v", got)
	}
	if err := host.Send(&pb.HostReport{Host: "h1", Flows: []*pb.FlowReport{{Flow: flow(4), Weight: 2}}}); err != nil {
		t.Error(err)
	}
	if m, err := host.Recv(); err != nil { // its weight
		t.Errorf("the stream of a host that keeps its role: %v, %v", m, err)
	}
}

// TestLimits: each identity has its own limits of calls and streams.
func TestLimits(t *testing.T) {
	r := start(t, "", policy+"limits: {rate: 0.001, burst: 3, streams: 1}\n")
	r.Issue(t, "alice", "", "spiffe://lab/ops/alice")
	r.Issue(t, "bob", "", "spiffe://lab/ops/bob")
	alice, bob := r.as(t, "alice"), r.as(t, "bob")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := pb.NewWeightServiceClient(alice).WatchWeights(ctx, &pb.WatchWeightsRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1 call under way, which is the most", "1 call under way", "more often than 0.001 times a second"} {
		err := calls["get"](ctx, alice)
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), want) {
			t.Errorf("call %d: %v, want ResourceExhausted with %q", i, err, want)
		}
	}
	for range 3 {
		if got := code(t, bob, "get"); got != codes.OK {
			t.Errorf("another identity: %v", got)
		}
	}
}

// TestTokenInPlainText: a token that arrives in plain text is refused, because others may have read
// it.
func TestTokenInPlainText(t *testing.T) {
	r := start(t, "viewer", policy)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+bearer)
	if err := calls["get"](ctx, r.as(t, "plain")); status.Code(err) != codes.Unauthenticated {
		t.Errorf("over plain text: %v", err)
	}
	if got := code(t, r.as(t, "plain"), "get"); got != codes.OK {
		t.Errorf("a viewer by the flag: %v", got)
	}
	if got := code(t, r.as(t, "plain"), "apply"); got != codes.PermissionDenied {
		t.Errorf("a viewer by the flag applies: %v", got)
	}
}
