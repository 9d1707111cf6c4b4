package operator

import (
	"bytes"
	"io"
	"strings"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
)

// TestDrawStatus: one table has the rows of all switches; an unknown value is -.
func TestDrawStatus(t *testing.T) {
	value := func(x *pb.StatusValue) []*pb.StatusValue { return []*pb.StatusValue{x} }
	table := func(name string, rows ...*pb.StatusRow) *pb.StatusTable {
		return &pb.StatusTable{Feature: "f", Name: name, Keys: []string{"port"}, Columns: []*pb.StatusColumn{{Head: "A B"}}, Rows: rows}
	}
	rows := []*pb.StatusRow{
		{Keys: []string{"1"}, Values: value(&pb.StatusValue{Shown: "x\n"})},
		{Keys: []string{"2"}, Values: value(&pb.StatusValue{Shown: "yes"})},
		{Keys: []string{"8"}, Values: value(&pb.StatusValue{})},
	}
	var out bytes.Buffer
	e := &env{Output: command.Output{Out: &out}}
	err := e.Tabs(func(w io.Writer) {
		drawStatus(w, []*pb.SwitchStatus{
			{Name: "s1", Status: []*pb.StatusTable{table("none"), table("ports", rows...)}},
			{Name: "s2", Status: []*pb.StatusTable{table("ports", rows[0]), table("more", rows[1])}},
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
	want := "f ports|SWITCH PORT A B|s1 1 x?|s1 2 yes|s1 8 -|s2 1 x?||f more|SWITCH PORT A B|s2 2 yes|"
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestFlowTable: the wide table also has the law and the virtual priority.
func TestFlowTable(t *testing.T) {
	h := &pb.HostReport{Host: "h1", Flows: []*pb.FlowReport{
		{Flow: &pb.FlowKey{SrcIpv4: "10.0.0.1", SrcPort: 1, DstIpv4: "10.0.0.2", DstPort: 2}, Application: "a", Weight: 1, Law: "dcqcn"},
	}}
	for wide, want := range map[bool]string{false: "ACKED RETRANSMITS", true: "RETRANSMITS LAW PRIORITY"} {
		var out bytes.Buffer
		e := &env{Output: command.Output{Out: &out}}
		if err := e.Tabs(func(w io.Writer) { flowHead(w, wide); flowRows(w, h, wide) }); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		row := strings.Join(strings.Fields(lines[1]), " ")
		if head := strings.Join(strings.Fields(lines[0]), " "); !strings.HasSuffix(head, want) || strings.HasSuffix(row, " 0 dcqcn none") != wide {
			t.Errorf("wide %v: %q, %q", wide, head, row)
		}
	}
}
