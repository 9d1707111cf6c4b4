package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestDrawStatus: one table for the rows of all switches, each value with its unit.
func TestDrawStatus(t *testing.T) {
	value := func(x *pb.StatusValue) []*pb.StatusValue { return []*pb.StatusValue{x} }
	table := func(name string, rows ...*pb.StatusRow) *pb.StatusTable {
		return &pb.StatusTable{Feature: "f", Name: name, Keys: []string{"port"}, Columns: []*pb.StatusColumn{{Head: "A B"}}, Rows: rows}
	}
	rows := []*pb.StatusRow{
		{Keys: []string{"1"}, Values: value(&pb.StatusValue{Value: &pb.StatusValue_Text{Text: "x\n"}})},
		{Keys: []string{"2"}, Values: value(&pb.StatusValue{Value: &pb.StatusValue_Truth{Truth: true}})},
		{Keys: []string{"3"}, Values: value(&pb.StatusValue{Value: &pb.StatusValue_Count{Count: 7}})},
		{Keys: []string{"4"}, Values: value(&pb.StatusValue{Value: &pb.StatusValue_Number{Number: 1.5}})},
		{Keys: []string{"5"}, Values: value(&pb.StatusValue{Value: &pb.StatusValue_Bytes{Bytes: 1500}})},
		{Keys: []string{"6"}, Values: value(&pb.StatusValue{Value: &pb.StatusValue_Ns{Ns: 4e6}})},
		{Keys: []string{"7"}, Values: value(&pb.StatusValue{Value: &pb.StatusValue_Time{Time: timestamppb.New(time.Unix(990, 0))}})},
		{Keys: []string{"8"}, Values: value(&pb.StatusValue{})},
	}
	var out bytes.Buffer
	e := &env{Out: &out, Now: func() time.Time { return time.Unix(1000, 0) }}
	err := e.table(func(w io.Writer) {
		drawStatus(w, e, []*pb.SwitchStatus{
			{Name: "s1", Status: []*pb.StatusTable{table("none"), table("ports", rows...)}},
			{Name: "s2", Status: []*pb.StatusTable{table("ports", rows[2]), table("more", rows[1])}},
			{Name: "s3"},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Split(out.String(), "\n") {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := "f ports|SWITCH PORT A B|s1 1 x?|s1 2 yes|s1 3 7|s1 4 1.5|s1 5 1.5KB|s1 6 4ms|s1 7 10s ago|s1 8 -|s2 3 7||f more|SWITCH PORT A B|s2 2 yes|"
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
