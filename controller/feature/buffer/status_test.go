package buffer

import (
	"testing"
	"time"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/units"
)

// TestStatus: what is known of a buffer stands at its metric, in base units.
func TestStatus(t *testing.T) {
	f := New(nil).(*feat)
	if got := f.Status("s1"); got != nil {
		t.Errorf("a switch of which nothing is known shows %v", got)
	}
	f.latest.Set("s1", &State{Policy: "off"})
	if got := f.Status("s1"); len(got) != 1 || got[0].Rows[0].Values[0] != "off" {
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
	sw := view.Switch{Status: f.Status("s1")}
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
	rows := map[*view.Table][]view.Row{}
	for _, s := range f.Status("s1") {
		rows[s.Table] = s.Rows
	}
	if p := rows[portTable]; p[0].Values[0] != "3" || p[1].Values[0] != "port" || p[0].Values[6] != units.Bytes(9000) {
		t.Errorf("ports %v", p)
	}
	if a := rows[alarmTable]; a[0].Keys[2] != "" || a[1].Keys[2] != "3" || a[1].Values[1] != "long" {
		t.Errorf("alarms %v", a)
	}
}
