package northbound

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestClientsOfNanoseconds: requests may use the deprecated fields. Answers, of calls and of streams, have them
// beside the Durations.
func TestClientsOfNanoseconds(t *testing.T) {
	r := start(t)
	f, err := r.fabric().GetFabric(t.Context(), &pb.GetFabricRequest{})
	if text, _ := pb.JSON(f); err != nil || !strings.Contains(string(text), `"delay_ns":"1000"`) {
		t.Errorf("a link's delay_ns is missing in %s, %v", text, err)
	}
	apply := &pb.ApplyConfigRequest{}
	if err := protojson.Unmarshal([]byte(`{"config": "name: x", "confirm_ns": "1"}`), apply); err != nil {
		t.Fatal(err)
	}
	if _, err := r.fabric().ApplyConfig(t.Context(), apply); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "1ns is not allowed") {
		t.Errorf("confirm_ns 1: %v, want that it is refused", err)
	}
	flow := reported("10.0.0.1", 1, 2, "")
	if err := protojson.Unmarshal([]byte(`{"rtt_ns": "7"}`), flow); err != nil {
		t.Fatal(err)
	}
	flow.Flow = reported("10.0.0.1", 1, 2, "").Flow
	s := attach(t, r, "h1", flow)
	send(t, s, "h1", flow) // when it is taken, the server has handled the first one
	for seen := false; !seen; {
		l, err := r.host().ListFlows(t.Context(), &pb.ListFlowsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range l.GetHosts() {
			for _, f := range h.GetFlows() {
				if seen = true; f.GetRtt().AsDuration() != 7 {
					t.Errorf("rtt_ns 7 became rtt %v", f.GetRtt())
				}
			}
		}
	}
}
