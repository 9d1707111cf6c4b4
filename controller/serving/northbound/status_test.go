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
	table := &view.Table{Feature: "f", Name: "ports", Keys: []string{"peer"}, Columns: []view.Column{{Head: "A", Metric: "a_total", Help: "Help."}}}
	soon := time.Now().Add(time.Hour)
	values := []struct {
		value any
		want  *pb.StatusValue
	}{
		{"x\xff", &pb.StatusValue{Value: &pb.StatusValue_Text{Text: "x\uFFFD"}, Shown: "x\uFFFD"}},
		{true, &pb.StatusValue{Value: &pb.StatusValue_Truth{Truth: true}, Shown: "yes"}},
		{7, &pb.StatusValue{Value: &pb.StatusValue_Count{Count: 7}, Shown: "7"}},
		{uint64(8), &pb.StatusValue{Value: &pb.StatusValue_Count{Count: 8}, Shown: "8"}},
		{1.5, &pb.StatusValue{Value: &pb.StatusValue_Number{Number: 1.5}, Shown: "1.5"}},
		{2 * units.KB, &pb.StatusValue{Value: &pb.StatusValue_Bytes{Bytes: 2000}, Shown: "2KB"}},
		{time.Millisecond, &pb.StatusValue{Value: &pb.StatusValue_Ns{Ns: 1e6}, Shown: "1ms"}},
		{soon, &pb.StatusValue{Value: &pb.StatusValue_Time{Time: timestamppb.New(soon)}, Shown: "0s ago"}},
		{time.Time{}, &pb.StatusValue{}},
		{nil, &pb.StatusValue{}},
	}
	row := view.Row{Keys: []string{"h1\xff"}}
	for _, v := range values {
		row.Values = append(row.Values, v.value)
	}
	got := SwitchToProto(view.Switch{Name: "s1", Status: []view.Status{{Table: table, Rows: []view.Row{row}}}}).GetStatus()[0]
	if got.GetFeature() != "f" || got.GetName() != "ports" || got.GetKeys()[0] != "peer" || got.GetColumns()[0].GetHead() != "A" ||
		got.GetColumns()[0].GetMetric() != "a_total" || got.GetColumns()[0].GetHelp() != "Help." || got.GetRows()[0].GetKeys()[0] != "h1\uFFFD" {
		t.Errorf("table %v", got)
	}
	for i, v := range values {
		if g := got.GetRows()[0].GetValues()[i]; !proto.Equal(g, v.want) {
			t.Errorf("%v arrives as %v, want %v", v.value, g, v.want)
		}
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
