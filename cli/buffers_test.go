package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

func TestDrawBuffers(t *testing.T) {
	class := uint32(3)
	at := timestamppb.New(time.Unix(990, 0))
	var out bytes.Buffer
	e := &Env{Out: &out, Now: func() time.Time { return time.Unix(1000, 0) }}
	err := e.table(func(w io.Writer) {
		drawBuffers(w, e, []*pb.SwitchStatus{
			{Name: "s1", Buffer: &pb.BufferStatus{
				Policy: "dsh", Time: at, Size: &pb.BufferPools{SharedBytes: 2e6, InsuranceBytes: 60000}, Used: &pb.BufferPools{SharedBytes: 1e6},
				Peak: &pb.BufferPools{SharedBytes: 15e5, InsuranceBytes: 3000}, ThresholdBytes: 62500,
				Ports: []*pb.PortBufferStatus{
					{Port: 1, Peer: "h1", PausedClasses: 1<<3 | 1<<5, PausedNs: []uint64{1e9, 5e8}, PauseFrames: 7, ResumeFrames: 6, RefreshFrames: 2, RefreshMostLateNs: 4e6, SharedBytes: []uint64{1000, 500}, Victim: true, LosslessDrops: []uint64{0, 4}},
					{Port: 2, Peer: "h2", PausedClasses: 255, PortPaused: true},
				},
				Alarms: []*pb.Alarm{{Kind: "pfc.stuck", Port: 1, Class: &class, Since: at, Text: "paused"}, {Kind: "pfc.storm", Port: 2, Since: at, Text: "many"}},
			}},
			{Name: "s2", Buffer: &pb.BufferStatus{Policy: "off"}},
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
	text := strings.Join(got, "\n")
	for _, want := range []string{
		"s1 dsh - 1MB of 2MB - 0B of 60KB 1.5MB 3KB 62.5KB 2 10s ago",
		"s2 off - - - - - - - - -",
		"s3 - - - - - - - - - -",
		"s1 1 h1 3,5 1.5s 7 6 2 4ms 1.5KB victim 4",
		"s1 2 h2 port 0s 0 0 0 0s 0B normal 0",
		"s1 pfc.stuck 1 3 " + at.AsTime().Local().Format(time.TimeOnly) + " 10s paused",
		"s1 pfc.storm 2 - ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A plan with thousands of entries of one table shows the first of them.
func TestLongPlan(t *testing.T) {
	r := &pb.PlanConfigResponse{Switches: []*pb.SwitchPlan{{Name: "s1"}}}
	add := func(kind pb.Change_Kind, table string, n int) {
		for i := range n {
			r.Switches[0].Changes = append(r.Switches[0].Changes, &pb.Change{Kind: kind, Text: fmt.Sprintf("%s key=%d → a()", table, i)})
		}
	}
	add(pb.Change_KIND_INSERT, "t.logs", mostLines+7)
	add(pb.Change_KIND_INSERT, "t.few", mostLines)
	add(pb.Change_KIND_DELETE, "t.logs", mostLines+1)
	var out bytes.Buffer
	drawPlan(&out, "f", r)
	text := out.String()
	if strings.Count(text, "\n") != 1+3*mostLines+2+1 || !strings.Contains(text, "  + t.logs … 7 more\n") || !strings.Contains(text, "  - t.logs … 1 more\n") ||
		!strings.Contains(text, fmt.Sprintf("%d to insert, 0 to modify, %d to delete on 1 of 1 switch.", 2*mostLines+7, mostLines+1)) {
		t.Errorf("plan:\n%s", text)
	}
}
