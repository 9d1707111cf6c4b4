package operator

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// A plan shows only the first of thousands of entries of one table.
func TestLongPlan(t *testing.T) {
	r := &pb.PlanConfigResponse{Switches: []*pb.SwitchPlan{{Name: "s1"}}}
	add := func(kind pb.Change_Kind, table string, n int) {
		for i := range n {
			r.Switches[0].Changes = append(r.Switches[0].Changes, &pb.Change{Kind: kind, Table: table, Text: fmt.Sprintf("%s key=%d → a()", table, i)})
		}
	}
	add(pb.Change_KIND_INSERT, "t.logs", mostLines+7)
	add(pb.Change_KIND_INSERT, "t.few", mostLines)
	add(pb.Change_KIND_DELETE, "t.logs", mostLines+1)
	var out bytes.Buffer
	drawPlan(&out, "f", r, mostLines)
	text := out.String()
	if strings.Count(text, "\n") != 1+3*mostLines+2+1 || !strings.Contains(text, "  + t.logs … 7 more\n") || !strings.Contains(text, "  - t.logs … 1 more\n") ||
		!strings.Contains(text, fmt.Sprintf("%d to insert, 0 to modify, %d to delete on 1 of 1 switch; 0 changes beside them.", 2*mostLines+7, mostLines+1)) {
		t.Errorf("plan:\n%s", text)
	}
	out.Reset()
	drawPlan(&out, "f", r, fewLines) // printed above a preview
	if text := out.String(); strings.Count(text, "\n") != 1+3*fewLines+3+1 || !strings.Contains(text, fmt.Sprintf("  + t.few … %d more\n", mostLines-fewLines)) {
		t.Errorf("plan above a preview:\n%s", text)
	}
}

// An unreadable switch is one line, whatever its planned changes.
func TestUnreachablePlan(t *testing.T) {
	r := &pb.PlanConfigResponse{}
	for _, name := range []string{"s1", "s2"} {
		s := &pb.SwitchPlan{Name: name, Unreachable: "no route to host"}
		for i := range 40 {
			s.Changes = append(s.Changes, &pb.Change{Kind: pb.Change_KIND_INSERT, Text: fmt.Sprintf("t%d key=%d → a()", i%20, i)})
		}
		r.Switches = append(r.Switches, s)
	}
	var out bytes.Buffer
	drawPlan(&out, "f", r, mostLines)
	want := "s1: cannot be read, so this is against an empty switch, 40 to insert: no route to host\n"
	if text := out.String(); strings.Count(text, "\n") != 3 || !strings.HasPrefix(text, want) || !strings.Contains(text, "80 to insert, 0 to modify, 0 to delete on 2 of 2 switches; 0 changes beside them.") {
		t.Errorf("plan:\n%s", text)
	}
}
