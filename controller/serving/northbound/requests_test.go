package northbound

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/controller/topology"
)

// kept is a rig whose weights and priorities are kept in a store.
func kept(t *testing.T, change func(*Options)) *rig {
	db, err := store.Open("", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, func(r *rig, o *Options) {
		o.State = db
		o.Weights = weights.New(weights.Options{Keeper: db, Audit: o.Audit})
		o.Priorities = priority.New(db)
		r.weights, r.priorities = o.Weights, o.Priorities
		configure(t, r, plan(t, paperNoise))
		change(o)
	})
}

// members is a cluster whose members can be replaced one by one.
type members struct{}

func (members) Replace(context.Context, string) error { return nil }

func asked(t *testing.T, id string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), pb.RequestIDKey, id)
}

// TestRequestIDs: a change with an id is made once; a repetition gets the same answer. The id is refused
// for any other change.
func TestRequestIDs(t *testing.T) {
	r := kept(t, func(o *Options) { o.Members = members{} })
	if _, err := r.weights.Set(weights.Caller{}, weights.Change{Key: mustKey(t, "10.0.0.3:1,10.0.0.9:50151"), Weight: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.priorities.Allocate(nil, "batch", 3); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		call  func(ctx context.Context, other bool) (proto.Message, error)
		undo  func() error // so that a second change would be visible
		lines int          // of the audit log
	}{
		"SetWeight": {func(ctx context.Context, other bool) (proto.Message, error) {
			return r.weight().SetWeight(ctx, &pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: 2 + float64(len(name(other)))})
		}, func() error {
			_, err := r.weight().SetWeight(t.Context(), &pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: 1})
			return err
		}, 2},
		"SetWeights": {func(ctx context.Context, other bool) (proto.Message, error) {
			return r.weight().SetWeights(ctx, &pb.SetWeightsRequest{Weights: []*pb.SetWeightRequest{{Flow: flow("10.0.0.2", 1), Weight: 2}, {Flow: flow("10.0.0.2", 2), Weight: 3, Application: name(other)}}})
		}, func() error { return nil }, 2},
		"SetBudget": {func(ctx context.Context, other bool) (proto.Message, error) {
			return r.weight().SetBudget(ctx, &pb.SetBudgetRequest{Application: "default" + name(other), Limit: 100})
		}, func() error { return nil }, 1},
		"AllocatePriority": {func(ctx context.Context, other bool) (proto.Message, error) {
			return r.channel().AllocatePriority(ctx, &pb.AllocatePriorityRequest{Application: "web" + name(other)})
		}, func() error { return nil }, 1},
		"DeleteFlow": {func(ctx context.Context, other bool) (proto.Message, error) {
			return r.weight().DeleteFlow(ctx, &pb.DeleteFlowRequest{Flow: flow("10.0.0.3", 1+uint32(len(name(other))))})
		}, func() error { return nil }, 1},
		"ReplaceMember": {func(ctx context.Context, other bool) (proto.Message, error) {
			return pb.NewStateServiceClient(r.conn).ReplaceMember(ctx, &pb.ReplaceMemberRequest{Name: "c3" + name(other)})
		}, func() error { return nil }, 1},
		"ReleasePriority": {func(ctx context.Context, other bool) (proto.Message, error) {
			return r.channel().ReleasePriority(ctx, &pb.ReleasePriorityRequest{Application: "batch" + name(other), Priority: 3})
		}, func() error { return nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(r.audit.List("", 1000))
			ctx := asked(t, "id-of-"+name)
			first, err := tc.call(ctx, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.undo(); err != nil {
				t.Fatal(err)
			}
			again, err := tc.call(ctx, false)
			if err != nil || !proto.Equal(first, again) {
				t.Errorf("asked again: %v, %v; the first answer was %v", again, err, first)
			}
			if _, err := tc.call(ctx, true); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "another request") {
				t.Errorf("another request: %v", err)
			}
			if got := len(r.audit.List("", 1000)) - before; got != tc.lines {
				t.Errorf("%d lines in the audit log, want %d", got, tc.lines)
			}
		})
	}
	for _, id := range []string{"a b", strings.Repeat("x", maxRequestID+1), ""} {
		if _, err := r.channel().AllocatePriority(asked(t, id), &pb.AllocatePriorityRequest{Application: "web"}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if list, err := r.channel().ListPriorities(asked(t, "a b"), &pb.ListPrioritiesRequest{}); err != nil || list.GetChannels()[0].GetApplication() != "web" || list.GetChannels()[1].GetApplication() != "" {
		t.Errorf("one priority is allocated: %v, %v", list, err)
	}
}

// TestRefusalsAreKept: a late copy of a refused request is not carried out, even if the reason of the refusal is gone.
func TestRefusalsAreKept(t *testing.T) {
	r := kept(t, func(*Options) {})
	take := func(ctx context.Context, application string) error {
		_, err := r.channel().AllocatePriority(ctx, &pb.AllocatePriorityRequest{Application: application, Priority: 2})
		return err
	}
	if err := take(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	first := take(asked(t, "late"), "batch")
	if _, err := r.channel().ReleasePriority(t.Context(), &pb.ReleasePriorityRequest{Application: "web", Priority: 2}); err != nil {
		t.Fatal(err)
	}
	again := take(asked(t, "late"), "batch")
	if status.Code(first) != codes.FailedPrecondition || first.Error() != again.Error() || len(status.Convert(again).Details()) != 2 {
		t.Errorf("first %v, then %v", first, again)
	}
	if err := take(asked(t, "another"), "batch"); err != nil {
		t.Error(err)
	}
}

func name(other bool) string {
	if other {
		return "other"
	}
	return ""
}

// TestChangesHaveIDs: each changing method that only the leader answers takes an id.
func TestChangesHaveIDs(t *testing.T) {
	for _, s := range []grpc.ServiceDesc{pb.FabricService_ServiceDesc, pb.StateService_ServiceDesc, pb.WeightService_ServiceDesc, pb.PriorityService_ServiceDesc, pb.HostService_ServiceDesc} {
		for _, m := range s.Methods {
			name := "/" + s.ServiceName + "/" + m.MethodName
			if changes := authz.MethodOf(name).Changes(); changes != pb.Changes(name) {
				t.Errorf("%s changes something: %v, takes an id: %v", name, changes, pb.Changes(name))
			}
		}
	}
}

// TestRequestsTakeTurns: simultaneous calls with one id make one change.
func TestRequestsTakeTurns(t *testing.T) {
	r := kept(t, func(*Options) {})
	ctx := asked(t, "once")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			a, err := r.channel().AllocatePriority(ctx, &pb.AllocatePriorityRequest{Application: "web"})
			if err != nil || a.GetChannel().GetPriority() != 1 {
				t.Errorf("%v, %v", a, err)
			}
		})
	}
	wg.Wait()
}

// TestLeadIsOver: a member that has lost leadership answers only about its own process, on calls and on streams.
func TestLeadIsOver(t *testing.T) {
	var over atomic.Bool
	r := kept(t, func(o *Options) {
		o.Leads = func() error {
			if over.Load() {
				return errors.New("the lease is over")
			}
			return nil
		}
	})
	stream, err := r.weight().WatchWeights(t.Context(), &pb.WatchWeightsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := stream.Recv(); err != nil || !m.GetFull() {
		t.Fatal(m, err)
	}
	if m, err := stream.Recv(); err != nil || !m.GetSynced() {
		t.Fatal(m, err)
	}
	over.Store(true)
	if _, err := r.weights.Set(weights.Caller{Peer: "test"}, weights.Change{Key: mustKey(t, "10.0.0.1:1,10.0.0.2:2"), Weight: 1}); err != nil {
		t.Fatal(err)
	}
	if m, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream sends %v, %v", m, err)
	}
	if list, err := r.weight().ListWeights(t.Context(), &pb.ListWeightsRequest{}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the lease is over") {
		t.Errorf("a read is answered: %v, %v", list, err)
	}
}

func mustKey(t *testing.T, text string) weights.Key {
	k, err := weights.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestLeadEndsDuringACall: the lease is checked when the answer is ready. An acknowledged change is in the store.
func TestLeadEndsDuringACall(t *testing.T) {
	over := false
	l := lead{func() error {
		if over {
			return errors.New("the lease is over")
		}
		return nil
	}, nil}
	unknown := toStatus(outcome.Unknown(errors.New("a timeout")))
	for _, tc := range []struct {
		method string
		err    error
		want   string
	}{
		{pb.WeightService_ListWeights_FullMethodName, nil, "the lease is over"},
		{pb.WeightService_SetWeight_FullMethodName, nil, ""},
		{pb.WeightService_SetWeight_FullMethodName, unknown, "outcome unknown"},
		{pb.WeightService_SetWeight_FullMethodName, status.Error(codes.FailedPrecondition, "by what is stale"), "the lease is over"},
		{"/grpc.health.v1.Health/Check", nil, ""},
	} {
		over = false
		_, err := l.unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: tc.method}, func(context.Context, any) (any, error) {
			over = true
			return nil, tc.err
		})
		if tc.want == "" && err != nil || tc.want != "" && (status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s, %v: %v, want %q", tc.method, tc.err, err, tc.want)
		}
	}
}

// TestReadsWaitForChanges: a read waits for changes that another member may have acknowledged
// already.
func TestReadsWaitForChanges(t *testing.T) {
	p := &outcome.Pending{}
	r := kept(t, func(o *Options) { o.Pending = p })
	end := p.Begin()
	read := make(chan error, 1)
	go func() {
		_, err := r.weight().ListWeights(t.Context(), &pb.ListWeightsRequest{})
		read <- err
	}()
	if _, err := r.weight().SetWeight(t.Context(), &pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: 2}); err != nil { // it does not wait
		t.Fatal(err)
	}
	select {
	case err := <-read:
		t.Errorf("a read did not wait: %v", err)
	default:
	}
	end()
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// TestOutcomes: the client gets the outcome that the store reports for a change.
func TestOutcomes(t *testing.T) {
	for _, tc := range []struct {
		err    error
		code   codes.Code
		reason string
	}{
		{outcome.FromStore(outcome.Unknown(context.DeadlineExceeded)), codes.Unavailable, "OUTCOME_UNKNOWN"},
		{outcome.FromStore(outcome.ErrNotLeader), codes.Unavailable, "NOT_MADE"},
		{outcome.FromStore(errors.New("disk full")), codes.Internal, "NOT_MADE"},
		{outcome.FromStore(syscall.ENOSPC), codes.ResourceExhausted, "NOT_MADE"},
		{&weights.InvalidError{Field: "weight"}, codes.InvalidArgument, "INVALID_FIELD"},
		{&weights.BudgetError{Application: "web"}, codes.FailedPrecondition, "BUDGET_EXCEEDED"},
		{&weights.UnknownApplicationError{}, codes.FailedPrecondition, "APPLICATION_UNKNOWN"},
		{&weights.ForeignError{Owner: "web"}, codes.PermissionDenied, "FLOW_FOREIGN"},
		{weights.ErrUnknownFlow, codes.NotFound, "FLOW_NOT_FOUND"},
		{weights.ErrFull, codes.ResourceExhausted, "TOO_MANY_FLOWS"},
		{topology.ErrNoLink, codes.NotFound, "LINK_NOT_FOUND"},
		{&history.GenerationError{Is: 7}, codes.FailedPrecondition, "GENERATION_CHANGED"},
		{history.ErrConfirmed, codes.FailedPrecondition, "NOTHING_TO_CONFIRM"},
	} {
		err := toStatus(tc.err)
		s := status.Convert(err)
		if reason, _ := pb.Reason(err); reason != tc.reason || s.Code() != tc.code || tells(err) != (reason == "OUTCOME_UNKNOWN" || reason == "NOT_MADE") {
			t.Errorf("%v: %v, %v", tc.err, s, s.Details())
		}
		if said := strings.Contains(s.Message(), "nothing was changed"); said != (tc.reason == "NOT_MADE") {
			t.Errorf("%v: %s", tc.err, s.Message())
		}
	}
}
