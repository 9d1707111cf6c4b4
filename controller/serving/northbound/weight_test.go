package northbound

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

func TestWeights(t *testing.T) {
	r := start(t)
	ctx, w := t.Context(), r.weight()
	if _, err := w.SetBudget(ctx, &pb.SetBudgetRequest{Application: "a", Limit: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SetBudget(ctx, &pb.SetBudgetRequest{Application: "default", Limit: 10}); err != nil {
		t.Fatal(err)
	}
	set, err := w.SetWeight(ctx, &pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: 1.00000049, Application: "a"})
	if err != nil || set.GetPrevious() != 0 || set.GetWeight() != 1 {
		t.Errorf("SetWeight = %v, %v", set, err)
	}
	both, err := w.SetWeights(ctx, &pb.SetWeightsRequest{Weights: []*pb.SetWeightRequest{
		{Flow: flow("10.0.0.1", 1), Weight: 0.5}, {Flow: flow("10.0.0.2", 2), Weight: 2.5, Application: "a"},
	}})
	if err != nil || both.GetWeights()[0].GetPrevious() != 1 || both.GetWeights()[1].GetWeight() != 2.5 {
		t.Errorf("SetWeights = %v, %v", both, err)
	}
	if _, err := w.SetWeight(ctx, &pb.SetWeightRequest{Flow: flow("10.0.0.3", 3), Weight: 9}); err != nil {
		t.Fatal(err)
	}
	list, err := w.ListWeights(ctx, &pb.ListWeightsRequest{Application: "a"})
	if err != nil || len(list.GetFlows()) != 2 || len(list.GetBudgets()) != 1 || list.GetBudgets()[0].GetUsed() != 3 {
		t.Errorf("ListWeights = %v, %v", list, err)
	}
	if _, err := w.DeleteFlow(ctx, &pb.DeleteFlowRequest{Flow: flow("10.0.0.3", 3)}); err != nil {
		t.Error(err)
	}
	audit, err := w.ListAudit(ctx, &pb.ListAuditRequest{Limit: 2})
	if err != nil || len(audit.GetEntries()) != 2 {
		t.Fatalf("ListAudit = %v, %v", audit, err)
	}
	e := audit.GetEntries()[1]
	if e.GetPeer() != "bufconn" || e.GetIdentity() != "loopback" || e.GetWhat() != "delete" || e.GetFlow().GetSrcPort() != 3 || e.GetPrevious() != 9 || !e.GetTime().AsTime().Equal(clock) {
		t.Errorf("entry = %v", e)
	}
}

func TestWeightsRefused(t *testing.T) {
	r := start(t)
	ctx, w := t.Context(), r.weight()
	if _, err := w.SetBudget(ctx, &pb.SetBudgetRequest{Application: "a", Limit: 3}); err != nil {
		t.Fatal(err)
	}
	call := func(req *pb.SetWeightRequest) error { _, err := w.SetWeight(ctx, req); return err }
	tests := []struct {
		name  string
		err   error
		code  codes.Code
		field string // of the violation, or the precondition's subject
		want  string
	}{
		{"no flow", call(&pb.SetWeightRequest{Weight: 1}), codes.InvalidArgument, "flow.src_ipv4", `src_ipv4: "" is not allowed`},
		{"port", call(&pb.SetWeightRequest{Flow: flow("10.0.0.1", 70000), Weight: 1}), codes.InvalidArgument, "flow.src_port", "src_port: 70000"},
		{"NaN", call(&pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: math.NaN()}), codes.InvalidArgument, "weight", "weight: NaN"},
		{"application", call(&pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: 1, Application: "\t"}), codes.InvalidArgument, "application", `"\t" is not allowed`},
		{"budget", call(&pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: 4, Application: "a"}), codes.FailedPrecondition, "application/a",
			"in use 0 - before 0 + asked 4 = 4 > limit 3"},
		{"unknown", call(&pb.SetWeightRequest{Flow: flow("10.0.0.1", 1), Weight: 4, Application: "nosuch"}), codes.FailedPrecondition, "application/nosuch",
			`application "nosuch" has no budget`},
	}
	_, err := w.SetWeights(ctx, &pb.SetWeightsRequest{Weights: []*pb.SetWeightRequest{
		{Flow: flow("10.0.0.1", 1), Weight: 1}, {Flow: flow("nonsense", 1), Weight: 1},
	}})
	tests = append(tests, struct {
		name  string
		err   error
		code  codes.Code
		field string
		want  string
	}{"one of many", err, codes.InvalidArgument, "weights[1].flow.src_ipv4", `"nonsense" is not allowed`})
	for _, tt := range tests {
		s := status.Convert(tt.err)
		if s.Code() != tt.code || !strings.Contains(s.Message(), tt.want) {
			t.Errorf("%s: %v, want %v %q", tt.name, tt.err, tt.code, tt.want)
		}
		field := ""
		for _, d := range s.Details() {
			switch d := d.(type) {
			case *errdetails.BadRequest:
				field = d.GetFieldViolations()[0].GetField()
			case *errdetails.PreconditionFailure:
				field = d.GetViolations()[0].GetSubject()
			}
		}
		if field != tt.field {
			t.Errorf("%s: the detail names %q, want %q", tt.name, field, tt.field)
		}
	}
	if _, err := w.DeleteFlow(ctx, &pb.DeleteFlowRequest{Flow: flow("10.0.0.1", 1)}); status.Code(err) != codes.NotFound {
		t.Errorf("DeleteFlow: %v", err)
	}
	if _, err := w.DeleteFlow(ctx, &pb.DeleteFlowRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("DeleteFlow: %v", err)
	}
	audit, err := w.ListAudit(ctx, &pb.ListAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, e := range audit.GetEntries() {
		if e.GetRefused() != "" {
			refused++
		}
	}
	if n := r.weights.Stats().Refusals; refused != 2 || n != uint64(len(tests)+2) {
		t.Errorf("the audit log has %d refusals of %d, want the first of each of two kinds of %d", refused, n, len(tests)+2)
	}
	if list, _ := w.ListWeights(ctx, &pb.ListWeightsRequest{}); len(list.GetFlows()) != 0 {
		t.Errorf("flows = %v", list)
	}
}

func TestWatchWeights(t *testing.T) {
	r := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	set := func(port uint32, weight float64, app string) {
		t.Helper()
		if _, err := r.weight().SetWeight(ctx, &pb.SetWeightRequest{Flow: flow("10.0.0.1", port), Weight: weight, Application: app}); err != nil {
			t.Fatal(err)
		}
	}
	set(1, 1, "a")
	set(2, 2, "b")
	stream, err := r.weight().WatchWeights(ctx, &pb.WatchWeightsRequest{Application: "a"})
	if err != nil {
		t.Fatal(err)
	}
	line := func() string {
		t.Helper()
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case m.GetFull():
			return "full"
		case m.GetSynced():
			return "synced"
		case m.GetBudget() != nil:
			return fmt.Sprintf("budget %s %v", m.GetBudget().GetApplication(), m.GetBudget().GetLimit())
		}
		return fmt.Sprintf("%d %v %v", m.GetFlow().GetFlow().GetSrcPort(), m.GetFlow().GetWeight(), m.GetDeleted())
	}
	for _, want := range []string{"full", "1 1 false", "budget a 0", "synced"} {
		if got := line(); got != want {
			t.Errorf("state: %q, want %q", got, want)
		}
	}
	set(2, 3, "")  // not watched
	set(1, 4, "")  // watched
	set(1, 4, "b") // leaves
	for _, want := range []string{"1 4 false", "1 4 true"} {
		if got := line(); got != want {
			t.Errorf("change: %q, want %q", got, want)
		}
	}
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("error = %v", err)
	}
}
