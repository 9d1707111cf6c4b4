package northbound

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/units"
)

// TestStatusToProto: every kind of value arrives, and what is unknown is unset.
func TestStatusToProto(t *testing.T) {
	now := time.Now()
	soon := time.Now().Add(time.Hour)
	values := []struct {
		value any
		want  *pb.StatusValue
	}{
		{"x", &pb.StatusValue{Value: &pb.StatusValue_Text{Text: "x"}, Shown: "x"}},
		{true, &pb.StatusValue{Value: &pb.StatusValue_Truth{Truth: true}, Shown: "yes"}},
		{uint64(8), &pb.StatusValue{Value: &pb.StatusValue_Count{Count: 8}, Shown: "8"}},
		{1.5, &pb.StatusValue{Value: &pb.StatusValue_Number{Number: 1.5}, Shown: "1.5"}},
		{2 * units.KB, &pb.StatusValue{Value: &pb.StatusValue_Bytes{Bytes: 2000}, Shown: "2KB"}},
		{time.Millisecond, &pb.StatusValue{Value: &pb.StatusValue_Ns{Ns: 1e6}, Shown: "1ms"}},
		{soon, &pb.StatusValue{Value: &pb.StatusValue_Time{Time: timestamppb.New(soon)}, Shown: "0s ago"}},
		{nil, &pb.StatusValue{}},
	}
	for _, v := range values {
		if got := valueToProto(v.value, now); !proto.Equal(got, v.want) {
			t.Errorf("%v arrives as %v, want %v", v.value, got, v.want)
		}
	}
	status := &pb.FeatureStatus{Telemetry: &pb.TelemetryStatus{Queues: []*pb.TelemetryQueue{{Port: 1, Peer: "h1", Queue: 7, HeldBytes: 9}}}}
	sw := SwitchToProto(view.Switch{Name: "s1", Status: status})
	if got := sw.GetStatus(); len(got) != 1 || !proto.Equal(sw.GetFeatures(), status) || !proto.Equal(got[0], &pb.StatusTable{
		Feature: "telemetry", Name: "queues", Keys: []string{"port", "peer", "queue"},
		Columns: []*pb.StatusColumn{{Head: "HOLDS", Metric: "port_queue_bytes", Help: "Bytes in the queue of the port at the last poll."}},
		Rows:    []*pb.StatusRow{{Keys: []string{"1", "h1", "7"}, Values: []*pb.StatusValue{{Value: &pb.StatusValue_Bytes{Bytes: 9}, Shown: "9B"}}}},
	}) {
		t.Errorf("tables %v", got)
	}
}

func TestEventOfPort(t *testing.T) {
	class := uint8(0)
	e := EventToProto(view.Event{Time: clock, Severity: view.Error, Subject: "s1", Kind: "pfc.stuck_over", Port: 3, Class: &class, Since: clock.Add(-time.Second)})
	if e.GetPort() != 3 || e.Class == nil || e.GetClass() != 0 || !e.GetSince().AsTime().Equal(clock.Add(-time.Second)) || e.GetSeverity() != pb.Event_SEVERITY_ERROR {
		t.Errorf("event = %v", e)
	}
	if e := EventToProto(view.Event{Kind: "link.up"}); e.Class != nil || e.GetSince() != nil {
		t.Errorf("event = %v", e)
	}
}
