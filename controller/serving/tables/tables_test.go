package tables

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

func TestText(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		value any
		want  string
	}{
		{nil, ""}, {"x", "x"}, {true, "yes"}, {false, "no"}, {uint64(8), "8"}, {1.5, "1.5"}, {1500 * units.Byte, "1.5KB"},
		{4 * time.Millisecond, "4ms"}, {time.Unix(990, 0), "10s ago"}, {now.Add(time.Hour), "0s ago"},
	} {
		if got := Text(tt.value, now); got != tt.want {
			t.Errorf("Text(%v) = %q, want %q", tt.value, got, tt.want)
		}
	}
}

// TestOf: every kind of value is converted, and an unknown value is unset.
func TestOf(t *testing.T) {
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
		if got := shownValue(v.value, now); !proto.Equal(got, v.want) {
			t.Errorf("%v arrives as %v, want %v", v.value, got, v.want)
		}
	}
	status := &pb.FeatureStatus{Telemetry: &pb.TelemetryStatus{Queues: []*pb.TelemetryQueue{{Port: 1, Peer: "h1", Queue: 7, HeldBytes: 9}}}}
	if got := FromStatus(status); len(got) != 1 || !proto.Equal(got[0], &pb.StatusTable{
		Feature: "telemetry", Name: "queues", Keys: []string{"port", "peer", "queue"},
		Columns: []*pb.StatusColumn{{Head: "HOLDS", Metric: "port_queue_bytes", Help: "Bytes in the queue of the port at the last poll."}},
		Rows:    []*pb.StatusRow{{Keys: []string{"1", "h1", "7"}, Values: []*pb.StatusValue{{Value: &pb.StatusValue_Bytes{Bytes: 9}, Shown: "9B"}}}},
	}) {
		t.Errorf("tables %v", got)
	}
}
