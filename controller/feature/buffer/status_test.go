package buffer

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/p4src/pollreport"
)

// TestStatus: each value of a buffer's status appears at its metric, in base units.
func TestStatus(t *testing.T) {
	f := newFeat(nil)
	if got := testenv.Shown(f.feature(), "s1").Features.GetBuffer(); got != nil {
		t.Errorf("a switch of which nothing is known shows %v", got)
	}
	f.latest.Set("s1", &State{Policy: "off"})
	if got := testenv.Shown(f.feature(), "s1").Features.GetBuffer(); !proto.Equal(got, &pb.BufferStatus{Switch: &pb.BufferSwitch{Policy: "off"}}) {
		t.Errorf("without a policy: %v", got)
	}
	f.latest.Set("s1", &State{
		Policy: "spfc", Time: time.Unix(1000, 0), Threshold: 60,
		Size: pollreport.Pools{Shared: 100}, Used: pollreport.Pools{Shared: 40}, Peak: pollreport.Pools{Headroom: 7},
		Ports: []PortState{{
			Number: 1, Peer: "h1", Lossless: 1 << 3, Victim: true, Turns: 3, Paused: 1 << 3, PausedTime: [8]time.Duration{3: 1500 * time.Millisecond},
			Pauses: 5, Resumes: 4, Refreshes: 2, Late: time.Millisecond, MostLate: 2 * time.Millisecond, Departed: 9000,
			Private: [8]uint32{3: 1}, Shared: [8]uint32{3: 40, 5: 1}, Headroom: [8]uint32{3: 2}, LosslessDrops: [8]uint64{3: 6},
		}, {Number: 2, Peer: "h2", Paused: 0xff, PortPaused: true}},
		Alarms: []Alarm{{Kind: StormAlarm, Port: 1, Class: -1, Text: "many"}, {Kind: StuckAlarm, Port: 1, Class: 3, Text: "long"}},
	})
	sw := testenv.Shown(f.feature(), "s1")
	port, class := []string{"1", "h1"}, []string{"1", "h1", "3"}
	for _, want := range []struct {
		metric string
		keys   []string
		value  float64
	}{
		{"buffer_threshold_bytes", nil, 60}, {"buffer_last_poll_timestamp_seconds", nil, 1000},
		{"buffer_size_bytes", []string{"spfc", "shared"}, 100}, {"buffer_used_bytes", []string{"spfc", "shared"}, 40}, {"buffer_peak_bytes", []string{"spfc", "headroom"}, 7},
		{"buffer_alarms", []string{"pfc.storm"}, 1}, {"buffer_alarms", []string{"buffer.lossless_drop"}, 0},
		{"pfc_pause_frames", port, 5}, {"pfc_resume_frames", port, 4}, {"pfc_refresh_frames", port, 2}, {"pfc_refresh_lateness_seconds", port, 0.001},
		{"pfc_refresh_lateness_max_seconds", port, 0.002}, {"pfc_departed_bytes", port, 9000}, {"pfc_victim", port, 1}, {"pfc_victim_turns", port, 3},
		{"pfc_paused", class, 1}, {"pfc_paused_seconds", class, 1.5}, {"pfc_lossless_dropped_packets", class, 6},
		{"pfc_ingress_private_bytes", class, 1}, {"pfc_ingress_shared_bytes", class, 40}, {"pfc_ingress_headroom_bytes", class, 2},
		{"pfc_ingress_shared_bytes", []string{"1", "h1", "5"}, 1},
	} {
		if n, ok := testenv.Number(sw, want.metric, want.keys...); !ok || n != want.value {
			t.Errorf("%s %v = %v, %v, want %v", want.metric, want.keys, n, ok, want.value)
		}
	}
	if _, ok := testenv.Number(sw, "pfc_paused", "1", "h1", "5"); ok {
		t.Error("a class that is not lossless is shown as if it were")
	}
	if _, ok := testenv.Number(sw, "pfc_ingress_shared_bytes", "1", "h1", "6"); ok {
		t.Error("a class that holds nothing is shown")
	}
	b := sw.Features.GetBuffer()
	if p := b.GetPorts(); p[0].GetPaused() != "3" || p[1].GetPaused() != "port" || p[0].GetDepartedBytes() != 9000 {
		t.Errorf("ports %v", p)
	}
	if a := b.GetAlarms(); a[0].Class != nil || a[1].GetClass() != 3 || a[1].GetDetail() != "long" {
		t.Errorf("alarms %v", a)
	}
}
