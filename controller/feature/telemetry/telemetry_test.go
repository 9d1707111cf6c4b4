package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

func TestPolls(t *testing.T) {
	env := testenv.New(t, "../../..", nil, soze.New(nil))
	callbacks, sw := &testenv.Callbacks{}, &testenv.Switch{Switch: "spine1"}
	f := New(callbacks)
	if lines := testenv.Lines(t, f, env, "spine1"); len(lines) != 1 || lines[0] != fmt.Sprintf("clone session %d → ports %d", ids.PollCloneSession, ids.CPUPort) {
		t.Errorf("wants %v", lines)
	}
	l := f.Attach(testenv.AtSwitch(env, sw.Name()), sw)
	if l.Interval() != 100*time.Millisecond {
		t.Errorf("interval = %v", l.Interval())
	}
	if err := l.Tick(context.Background(), time.Now()); err != nil || !slices.Equal(sw.Polled, []uint32{1, 2, 3, 4}) {
		t.Fatalf("polls of %v, %v", sw.Polled, err)
	}
	start := time.Now()
	report := &feature.Report{Report: pollreport.Report{Port: 3, LastDelay: 2, DepartedBytes: 5, DepartedPackets: 6, AdmissionDrops: 7, QueueBytes: [8]uint32{6: 1500}}}
	l.Receive(start, feature.Message{})
	l.Receive(start, feature.Message{Report: report})
	if len(callbacks.Samples) != 1 {
		t.Fatalf("samples = %v", callbacks.Samples)
	}
	s := callbacks.Samples[0]
	if s.Time != start || s.Switch != "spine1" || s.Port != 3 || s.Peer != "leaf3" || s.QueueingDelay != 16*time.Microsecond || s.DepartureBytes != 5 || s.DeparturePackets != 6 || s.Drops != 7 {
		t.Errorf("sample = %+v", s)
	}
	shown := testenv.Shown(f, "spine1")
	for metric, want := range map[string]float64{
		"port_queueing_delay_seconds": 16e-6, "port_transmitted_bytes": 5, "port_transmitted_packets": 6, "port_refused_packets": 7,
	} {
		if n, ok := testenv.Number(shown, metric, "3", "leaf3"); !ok || n != want {
			t.Errorf("%s = %v, %v, want %v", metric, n, ok, want)
		}
	}
	if n, ok := testenv.Number(shown, "port_queue_bytes", "3", "leaf3", "6"); !ok || n != 1500 {
		t.Errorf("queue 6 = %v, %v", n, ok)
	}
	sw.Err = errors.New("busy")
	if err := l.Tick(context.Background(), start); !errors.Is(err, sw.Err) {
		t.Errorf("error = %v", err)
	}
}

// TestOneSampleAnInterval: each interval has one sample of a port, however often others poll it,
// and whether reports are early or late.
func TestOneSampleAnInterval(t *testing.T) {
	for _, gap := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond, 99 * time.Millisecond, 101 * time.Millisecond} {
		callbacks := &testenv.Callbacks{}
		l := New(callbacks).Attach(testenv.AtSwitch(testenv.New(t, "../../..", nil, soze.New(nil)), "spine1"), &testenv.Switch{Switch: "spine1"})
		start := time.Unix(1000, 0)
		for at := time.Duration(0); at < 10*time.Second; at += gap {
			l.Receive(start.Add(at), feature.Message{Report: &feature.Report{Report: pollreport.Report{Port: 3}}})
		}
		if n := len(callbacks.Samples); n < 98 || n > 102 {
			t.Errorf("reports each %v: %d samples in 10 s, want 100", gap, n)
		}
	}
}

func TestNoPolls(t *testing.T) {
	for _, edit := range [][2]string{
		{"poll_interval: 100ms", `poll_interval: "off"`},
		{"priority_queues: 8 ", "priority_queues: 7 "},
	} {
		env := testenv.New(t, "../../..", func(s string) string { return strings.Replace(s, edit[0], edit[1], 1) })
		if l := New(nil).Attach(testenv.AtSwitch(env, "spine2"), &testenv.Switch{Switch: "spine2"}); l != nil {
			t.Errorf("%s polls", edit[1])
		}
	}
}

// TestTofino: reports arrive through the chip's CPU port.
func TestTofino(t *testing.T) {
	for target, cpu := range map[string]uint32{"tofino1": 320, "tofino2": 0, "tofino1, cpu_port: 192": 192} {
		env := testenv.New(t, "../../..", func(s string) string {
			return strings.Replace(s, `"127.0.0.1:9551", target: embedded`, `"127.0.0.1:9551", target: `+target, 1)
		})
		env = testenv.WithPipeline(env, testenv.Tofino(t, env.Config.Switch("leaf1").Target.Chip()))
		sw := &testenv.Switch{Switch: "leaf1"}
		f := New(&testenv.Callbacks{})
		if lines := testenv.Lines(t, f, env, "leaf1"); len(lines) != 1 || lines[0] != fmt.Sprintf("clone session %d → ports %d", ids.PollCloneSession, cpu) {
			t.Errorf("%s wants %v", target, lines)
		}
		l := f.Attach(testenv.AtSwitch(env, sw.Name()), sw)
		if err := l.Tick(context.Background(), time.Now()); err != nil || len(sw.Polled) != 4 {
			t.Fatalf("%s: polls of %v, %v", target, sw.Polled, err)
		}
	}
}
