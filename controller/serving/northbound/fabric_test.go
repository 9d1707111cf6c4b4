package northbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/internal/yamlnode"
)

func TestDescribe(t *testing.T) {
	r := start(t)
	f, err := r.fabric().GetFabric(t.Context(), &pb.GetFabricRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if f.GetName() != "test" || f.GetGeneration() != 3 || len(f.GetHosts()) != 2 || f.GetLinks()[0].GetDelay().AsDuration() != 1000 ||
		f.GetLinks()[0].GetA().GetPort() != 1 || f.GetLinks()[0].GetState() != pb.PortStatus_STATE_UP || f.GetLinks()[1].GetState() != pb.PortStatus_STATE_UNKNOWN {
		t.Errorf("fabric = %v", f)
	}
	if f.GetBuild() == "" || time.Since(f.GetTime().AsTime()) < 0 {
		t.Errorf("build %q, time %v, want some", f.GetBuild(), f.GetTime())
	}
	l, err := r.fabric().ListSwitches(t.Context(), &pb.ListSwitchesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s := l.GetSwitches()[0]
	if s.GetState() != pb.SwitchStatus_STATE_DEGRADED || s.GetError() != "bad bytes \uFFFD" || s.GetEntries() != 9 ||
		!s.GetSince().AsTime().Equal(clock) || s.GetCapabilities()[0].GetSupported() || s.GetPorts()[0].GetPeer() != "h1" {
		t.Errorf("switch = %v", s)
	}
}

func TestPlanAndApply(t *testing.T) {
	r := start(t)
	p, err := r.fabric().PlanConfig(t.Context(), &pb.PlanConfigRequest{Config: "name: x"})
	if err != nil || p.GetSwitches()[0].GetChanges()[0].GetKind() != pb.Change_KIND_INSERT || p.GetSwitches()[0].GetUnreachable() == "" {
		t.Errorf("plan = %v, %v", p, err)
	}
	a, err := r.fabric().ApplyConfig(t.Context(), &pb.ApplyConfigRequest{Config: "name: x", File: "f.yaml"})
	if err != nil || a.GetGeneration() != 4 || a.GetSwitches()[0].GetDeleted() != 3 || a.GetSwitches()[0].GetError() != "table full" {
		t.Errorf("apply = %v, %v", a, err)
	}
}

func TestFaultsBecomeFieldViolations(t *testing.T) {
	r := start(t)
	_, err := r.fabric().ApplyConfig(t.Context(), &pb.ApplyConfigRequest{Config: "fault", File: "f.yaml"})
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument || s.Message() != `f.yaml:12: links[3].rate: "fast" is not a rate (and 1 more)` {
		t.Errorf("status = %v", s)
	}
	var fields, places []string
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				fields = append(fields, v.GetField()+"="+v.GetDescription())
			}
		case *pb.ConfigFaults:
			for _, f := range d.GetFaults() {
				places = append(places, fmt.Sprintf("%s:%d %s", f.GetFile(), f.GetLine(), f.GetField()))
			}
		}
	}
	if got := strings.Join(fields, "; "); got != `links[3].rate=f.yaml:12: "fast" is not a rate; name=f.yaml: is missing` {
		t.Errorf("violations = %s", got)
	}
	if got := strings.Join(places, "; "); got != "f.yaml:12 links[3].rate; f.yaml:0 name" {
		t.Errorf("faults = %s", got)
	}
	if len(r.applied) != 0 {
		t.Error("a faulty configuration was applied")
	}
}

// TestLargeConfiguration: the API accepts every configuration that the daemon accepts as a file.
func TestLargeConfiguration(t *testing.T) {
	r := start(t)
	text := strings.Repeat("#", yamlnode.MaxText)
	if _, err := r.fabric().ApplyConfig(t.Context(), &pb.ApplyConfigRequest{Config: text, File: "large.yaml"}); err != nil || len(r.applied) != 1 {
		t.Errorf("error %v, %d applied", err, len(r.applied))
	}
}

func TestErrorsOfTheCore(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want codes.Code
	}{
		{errors.New("disk on fire"), codes.Internal},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{fmt.Errorf("switch s1: %w", status.Error(codes.Unavailable, "gone")), codes.Unavailable},
		{errors.New("bytes \xff"), codes.Internal},
	} {
		r := start(t)
		r.err = tt.err
		if _, err := r.fabric().PlanConfig(t.Context(), &pb.PlanConfigRequest{}); status.Code(err) != tt.want {
			t.Errorf("%v becomes %v, want %v", tt.err, err, tt.want)
		}
	}
}

func TestSetLink(t *testing.T) {
	r := start(t)
	for _, tt := range []struct {
		a, b string
		want string
		code codes.Code
	}{
		{"s1", "h1", "", codes.OK},
		{"s1", "s9", `no link joins "s1" and "s9": anything`, codes.NotFound},
		{"", "s1", `a: "" is not allowed`, codes.InvalidArgument},
		{"s1", "", `b: "" is not allowed`, codes.InvalidArgument},
	} {
		_, err := r.fabric().SetLink(t.Context(), &pb.SetLinkRequest{A: tt.a, B: tt.b})
		if s := status.Convert(err); s.Code() != tt.code || !strings.Contains(s.Message(), tt.want) {
			t.Errorf("%s %s: %v, want %v %q", tt.a, tt.b, err, tt.code, tt.want)
		}
	}
	if fmt.Sprint(r.links) != "[s1-h1 false s1-s9 false]" {
		t.Errorf("links = %v", r.links)
	}
}

func TestWatchEvents(t *testing.T) {
	r := start(t)
	r.events.Publish(&pb.Event{Time: pb.Stamp(clock), Severity: pb.Event_SEVERITY_WARNING, Subject: "s1", Kind: "port.down", Message: "port 1"})
	stream, err := r.fabric().WatchEvents(t.Context(), &pb.WatchEventsRequest{Recent: 5})
	if err != nil {
		t.Fatal(err)
	}
	e, err := stream.Recv()
	if err != nil || e.GetKind() != "port.down" || e.GetSeverity() != pb.Event_SEVERITY_WARNING || !e.GetTime().AsTime().Equal(clock) {
		t.Fatalf("event = %v, %v", e, err)
	}
	r.events.Publish(&pb.Event{Kind: "port.up"})
	if e, err = stream.Recv(); err != nil || e.GetKind() != "port.up" || e.GetTime() != nil || e.GetSeverity() != 0 {
		t.Errorf("event = %v, %v", e, err)
	}
}

// A client that returns with its last cursor gets all missed events, or is told that some are lost.
func TestEventsResume(t *testing.T) {
	r := start(t)
	watch := func(after string) func() *pb.Event {
		stream, err := r.fabric().WatchEvents(t.Context(), &pb.WatchEventsRequest{After: after, Recent: 9})
		if err != nil {
			t.Fatal(err)
		}
		return func() *pb.Event {
			e, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
	publish := func(from, to int) {
		for i := from; i <= to; i++ {
			r.events.Publish(&pb.Event{Kind: fmt.Sprint(i)})
		}
	}
	publish(1, 3)
	first := watch("")
	first()
	second := first().GetCursor()
	again := watch(second)
	if e := again(); e.GetKind() != "3" {
		t.Errorf("after the second event: %v, want the third", e)
	}
	publish(4, 23) // the test's bus remembers 16 events
	late := watch(second)
	if e := late(); e.GetKind() != "stream.dropped" || e.GetMessage() != "this client missed 5 events" || e.GetCursor() != "" {
		t.Errorf("five of 21 events are forgotten, and the stream starts with %v", e)
	}
	if e := late(); e.GetKind() != "8" {
		t.Errorf("then %v, want the oldest that is remembered", e)
	}
	foreign := watch("elsewhere-2")
	if e := foreign(); e.GetKind() != "stream.dropped" || !strings.Contains(e.GetMessage(), "another start") {
		t.Errorf("a foreign cursor: %v", e)
	}
	if e := foreign(); e.GetKind() != "8" {
		t.Errorf("then %v, want all that is remembered", e)
	}
	for _, bad := range []string{"x", "-", "-1", "a-b", "a--1"} {
		stream, err := r.fabric().WatchEvents(t.Context(), &pb.WatchEventsRequest{After: bad})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = stream.Recv(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "after") {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

// A client that never reads fills its flow-control window. Later it learns how many events it
// missed.
func TestSlowClientsAreTold(t *testing.T) {
	r := start(t)
	stream, err := r.fabric().WatchEvents(t.Context(), &pb.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	const n = 3 * events.DefaultBuffer
	for range n {
		r.events.Publish(&pb.Event{Kind: "x", Message: strings.Repeat("m", 1000)})
	}
	r.events.Publish(&pb.Event{Kind: "last"})
	received, missed := 0, 0
	for {
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetKind() == "last" {
			break
		}
		received++
		if e.GetKind() == "stream.dropped" {
			received--
			var m int
			if _, err := fmt.Sscanf(e.GetMessage(), "this client missed %d", &m); err != nil {
				t.Fatal(err)
			}
			missed += m
		}
	}
	if received+missed != n || missed == 0 {
		t.Errorf("received %d, told of %d missed, published %d", received, missed, n)
	}
}

func TestStreamTelemetry(t *testing.T) {
	r := start(t)
	if _, err := recvErr(r, "s1", "nope"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `switches[1]: "nope" is not allowed: want one of s1`) {
		t.Errorf("error = %v", err)
	}
	stream, err := r.fabric().StreamTelemetry(t.Context(), &pb.StreamTelemetryRequest{Switches: []string{"s1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	r.samples.Publish(feature.Sample{Switch: "s2"})
	r.samples.Publish(feature.Sample{Time: clock, Switch: "s1", Port: 2, Peer: "h2", QueueBytes: [8]uint32{7: 1500}, QueueingDelay: time.Millisecond, Drops: 5})
	v, err := stream.Recv()
	if err != nil || v.GetSwitch() != "s1" || v.GetPort() != 2 || len(v.GetQueueBytes()) != 8 || v.GetQueueBytes()[7] != 1500 ||
		v.GetQueueingDelay().AsDuration() != 1e6 || v.GetDrops() != 5 {
		t.Errorf("sample = %v, %v", v, err)
	}
}

func recvErr(r *rig, switches ...string) (*pb.TelemetrySample, error) {
	stream, err := r.fabric().StreamTelemetry(context.Background(), &pb.StreamTelemetryRequest{Switches: switches})
	if err != nil {
		return nil, err
	}
	return stream.Recv()
}

func TestPanicBecomesInternal(t *testing.T) {
	r := start(t)
	if _, err := r.fabric().PlanConfig(t.Context(), &pb.PlanConfigRequest{Config: "panic"}); status.Code(err) != codes.Internal {
		t.Errorf("error = %v", err)
	}
	if _, err := r.weight().ListWeights(t.Context(), &pb.ListWeightsRequest{}); err != nil {
		t.Errorf("the server does not survive a panic: %v", err)
	}
}

// TestEveryErrorHasAReason: an error without a reason of its own gets the reason of its code.
func TestEveryErrorHasAReason(t *testing.T) {
	r := start(t)
	_, err := r.fabric().PlanConfig(t.Context(), &pb.PlanConfigRequest{Config: "panic"})
	if reason, _ := pb.Reason(err); reason != pb.ReasonInternal {
		t.Errorf("%v has the reason %q, want %s", err, reason, pb.ReasonInternal)
	}
	stream, err := pb.NewStateServiceClient(r.conn).BackupState(t.Context(), &pb.BackupStateRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if reason, _ := pb.Reason(err); status.Code(err) != codes.FailedPrecondition || reason != pb.ReasonNotPossible {
		t.Errorf("%v has the reason %q, want %s", err, reason, pb.ReasonNotPossible)
	}
	for _, tc := range []struct {
		err    error
		code   codes.Code
		reason string
	}{
		{nil, codes.OK, ""},
		{context.Canceled, codes.Canceled, ""},
		{errors.New("x"), codes.Unknown, pb.ReasonInternal},
		{errStopping, codes.Unavailable, pb.ReasonTryAgain},
		{errSuperseded, codes.Aborted, pb.ReasonSuperseded},
		{toStatus(outcome.ErrUnknown), codes.Unavailable, pb.ReasonOutcomeUnknown},
	} {
		err := explained(tc.err)
		s, ok := status.FromError(err)
		if !ok {
			s = status.FromContextError(err) // like gRPC's server
		}
		if reason, _ := pb.Reason(err); s.Code() != tc.code || reason != tc.reason {
			t.Errorf("%v: code %v, reason %q; want %v, %q", tc.err, s.Code(), reason, tc.code, tc.reason)
		}
	}
}

func TestHealthAndReflection(t *testing.T) {
	r := start(t)
	for _, name := range []string{"", "headgate.v1.FabricService", "headgate.v1.WeightService", "headgate.v1.HostService"} {
		h, err := healthpb.NewHealthClient(r.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, h, err)
		}
	}
	stream, err := reflectionpb.NewServerReflectionClient(r.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil || !strings.Contains(m.String(), "headgate.v1.WeightService") {
		t.Errorf("reflection = %v, %v", m, err)
	}
	_ = stream.CloseSend()
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("reflection ends with %v", err)
	}
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	r := start(t)
	events, err := r.fabric().WatchEvents(t.Context(), &pb.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	attach, err := r.host().Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Header(); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if _, err := events.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("events end with %v", err)
	}
	if _, err := attach.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("attach ends with %v", err)
	}
}

// Two listeners serve one API: a host that attaches at one is visible at the other. If one fails,
// both end.
func TestTwoListeners(t *testing.T) {
	reg := weights.New(weights.Options{})
	srv := New(Options{Backend: &backend{}, Weights: reg, Audit: audit.New(audit.Options{}), Authorizer: authz.New(authz.Options{Loopback: authz.Admin}), Log: slog.New(slog.DiscardHandler)})
	first, second := bufconn.Listen(1<<20), bufconn.Listen(1<<20)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(t.Context(), first, second) }()
	dial := func(lis *bufconn.Listener) *rig {
		conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return &rig{conn: conn}
	}
	expect(t, attach(t, dial(first), "h1", reported("10.0.0.1", 1, 1, "")), "1 1 ")
	if list, err := dial(second).host().ListFlows(t.Context(), &pb.ListFlowsRequest{}); err != nil || len(list.GetHosts()) != 1 {
		t.Errorf("ListFlows = %v, %v", list, err)
	}
	_ = second.Close()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "northbound API at bufconn") {
		t.Errorf("Serve = %v", err)
	}
}
