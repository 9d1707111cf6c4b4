package northbound

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestSeries: the server takes samples while it runs, and the error for a bad request names its
// field.
func TestSeries(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		name string
		req  *pb.GetSeriesRequest
		want codes.Code
	}{
		{"an unknown node", &pb.GetSeriesRequest{Node: "s9"}, codes.NotFound},
		{"no flow", &pb.GetSeriesRequest{Flow: &pb.FlowKey{SrcIpv4: "h1"}}, codes.InvalidArgument},
		{"all", &pb.GetSeriesRequest{Busiest: 9}, codes.OK},
	} {
		if _, err := r.fabric().GetSeries(t.Context(), c.req); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out, err := r.fabric().GetSeries(t.Context(), &pb.GetSeriesRequest{Node: "s1"})
		if err == nil && len(out.GetPorts()) == 3 && len(out.GetTimes()) > 0 && out.GetPorts()[0].GetLinkBps() == 1e8 && len(out.GetPorts()[0].GetQueueBytes()) == len(out.GetTimes()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v, %v", out, err)
		}
	}
}
