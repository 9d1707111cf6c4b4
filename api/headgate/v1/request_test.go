package headgatev1

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// TestAskAgain: a change is repeated with the same id until its outcome is known, but not for ever.
func TestAskAgain(t *testing.T) {
	const set, list = WeightService_SetWeight_FullMethodName, WeightService_ListWeights_FullMethodName
	lost := status.Error(codes.Unavailable, "error reading from server: EOF")
	nobody := status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp: connection refused"`)
	full := status.Error(codes.FailedPrecondition, "over its budget")
	for name, tc := range map[string]struct {
		method  string
		id      string // given by the caller; "" if the client chooses one
		answers []error
		calls   int
		want    string // text of the error; "" for none
	}{
		"made":                       {set, "", []error{nil}, 1, ""},
		"made in the end":            {set, "", []error{lost, nobody, nil}, 3, ""},
		"with the caller's id":       {set, "mine", []error{lost, nil}, 2, ""},
		"refused":                    {set, "", []error{lost, full}, 2, "over its budget"},
		"nobody is there":            {set, "", []error{nobody}, 1, "connection refused"},
		"nobody comes back":          {set, "mine", []error{lost, nobody}, 0, "outcome unknown: ask again with the same request id, which is mine: connection error"},
		"a read":                     {list, "", []error{lost, nil}, 2, ""},
		"a read that is not to be":   {list, "", []error{lost}, 0, "error reading"},
		"of somebody else's service": {"/gnmi.gNMI/Get", "", []error{lost}, 1, "error reading"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, began := t.Context(), time.Now()
				if tc.id != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, RequestIDKey, tc.id)
				}
				calls, ids := 0, map[string]bool{}
				err := AskAgain(ctx, tc.method, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					md, _ := metadata.FromOutgoingContext(ctx)
					ids[strings.Join(md.Get(RequestIDKey), ",")] = true
					calls++
					return tc.answers[min(calls, len(tc.answers))-1]
				})
				if tc.calls != 0 && calls != tc.calls || tc.calls == 0 && (calls < 5 || time.Since(began) > askAgainFor) {
					t.Errorf("%d calls in %v", calls, time.Since(began))
				}
				if len(ids) != 1 || ids[""] != (tc.method != set) || tc.id != "" && !ids[tc.id] {
					t.Errorf("ids %v", ids)
				}
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
			})
		})
	}
}
