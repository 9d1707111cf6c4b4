package metrics

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// many is a fabric of switches with 100 ports each. The last port of each is down.
func many(switches int) *source {
	src := &source{}
	for i := range switches {
		s := &pb.SwitchStatus{Name: fmt.Sprintf("switch%d", i+1), State: pb.SwitchStatus_STATE_READY}
		telemetry, classes := &pb.TelemetryStatus{}, &pb.BufferStatus{}
		s.Features = &pb.FeatureStatus{Telemetry: telemetry, Buffer: classes}
		for p := range 100 {
			s.Ports = append(s.Ports, &pb.PortStatus{Port: uint32(p + 1), Peer: fmt.Sprintf("host-%d-%d", i+1, p+1), State: pb.PortStatus_STATE_UP})
			telemetry.Ports = append(telemetry.Ports, &pb.TelemetryPort{
				Port: uint32(p + 1), Delay: pb.OfNanoseconds(uint64(p) * 1e9), TransmittedBytes: uint64(p), Polled: timestamppb.New(time.Unix(int64(1000+p), 0)),
			})
			classes.Classes = append(classes.Classes, &pb.BufferClass{Port: uint32(p + 1)})
		}
		s.Ports[99].State = pb.PortStatus_STATE_DOWN
		classes.Classes[7].PausedTime = pb.OfNanoseconds(2e9) // the other ports' is unknown
		src.switches = append(src.switches, s)
	}
	return src
}

// TestManyPorts: the scrape of a fabric with 10 000 ports, and of one twice as large, has a bounded
// size, and the series that merge a switch's ports are right.
func TestManyPorts(t *testing.T) {
	perPort := `headgate_port_queueing_delay_seconds{peer="",port="100",switch="switch1"} 99`
	upPerPort := `headgate_port_up{peer="host-1-100",port="100",switch="switch1"} 0`
	all := []string{
		`headgate_port_queueing_delay_seconds{peer="(all)",port="(all)",switch="switch1"} 99`,
		`headgate_port_transmitted_bytes_total{peer="(all)",port="(all)",switch="switch1"} 4950`,
		`headgate_pfc_paused_seconds_total{class="0",peer="(all)",port="(all)",switch="switch1"} 2`,
		`headgate_port_last_sample_timestamp_seconds{peer="(all)",port="(all)",switch="switch1"} 1000`,
	}
	upAll := `headgate_port_up{peer="(all)",port="(all)",switch="switch1"} 0`
	for _, tt := range []struct {
		switches  int
		want, not []string
	}{
		{10, []string{perPort, upPerPort, "headgate_port_merged_series 0"}, append(all, upAll)},
		{100, append(all, upPerPort, "headgate_port_merged_series 108900"), []string{perPort, upAll}},
		{200, append(all, upAll, "headgate_port_merged_series 237600"), []string{perPort, upPerPort}},
	} {
		h, err := Handler(NewCollector(Options{Source: many(tt.switches)}), HandlerOptions{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		_, text := scrape(t, h, "/metrics")
		for _, w := range tt.want {
			if !strings.Contains(text, w+"\n") {
				t.Errorf("%d switches: missing: %s", tt.switches, w)
			}
		}
		for _, n := range tt.not {
			if strings.Contains(text, n+"\n") {
				t.Errorf("%d switches: shown: %s", tt.switches, n)
			}
		}
		if most := 1 << 20; len(text) > most {
			t.Errorf("%d switches: a scrape has %d bytes, want at most %d", tt.switches, len(text), most)
		}
		t.Logf("%d ports: %d bytes", 100*tt.switches, len(text))
	}
}
