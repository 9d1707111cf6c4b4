package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

func TestPolls(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	hub, sw := &testenv.Hub{}, &testenv.Switch{Switch: "spine1"}
	f := New(hub)
	if lines := testenv.Lines(t, f, env, "spine1"); len(lines) != 1 || lines[0] != fmt.Sprintf("clone session %d → ports %d", ids.PollCloneSession, ids.CPUPort) {
		t.Errorf("wants %v", lines)
	}
	l := f.Attach(env, sw)
	if l.Interval() != 100*time.Millisecond {
		t.Errorf("interval = %v", l.Interval())
	}
	if err := l.Tick(context.Background(), time.Now()); err != nil || len(sw.Out) != 4 {
		t.Fatalf("%d polls, %v", len(sw.Out), err)
	}
	m := sw.Out[2].GetMetadata()
	if pipeline.Number(m[0].Value) != 3 || pipeline.Number(m[1].Value) != 7 || pipeline.Number(m[2].Value) != ids.PacketOutPoll {
		t.Errorf("poll = %v", sw.Out[2])
	}
	now := time.Now()
	r := pollreport.Report{Port: 3, LastDelay: 2, DepartedBytes: 5, DepartedPackets: 6, AdmissionDrops: 7}
	report := func(reason uint64, payload []byte) feature.Message {
		return feature.Message{Packet: &pipeline.PacketIn{Fields: map[string]uint64{"reason": reason}, Payload: payload}}
	}
	full := append(r.Append(nil), sw.Out[2].GetPayload()...)
	if !l.Receive(now, report(ids.PacketInPoll, full)) || len(hub.Samples) != 1 {
		t.Fatalf("samples = %v", hub.Samples)
	}
	s := hub.Samples[0]
	if s.Time != now || s.Switch != "spine1" || s.Port != 3 || s.Peer != "leaf3" || s.QueueingDelay != 16*time.Microsecond || s.DepartureBytes != 5 || s.DeparturePackets != 6 || s.Drops != 7 {
		t.Errorf("sample = %+v", s)
	}
	// Polls of others and broken ones are taken and dropped; other packets are left.
	if !l.Receive(now, report(ids.PacketInPoll, full[:40])) || !l.Receive(now, report(ids.PacketInPoll, r.Append(nil))) || len(hub.Samples) != 1 {
		t.Error("a broken report made a sample")
	}
	if l.Receive(now, report(5, full)) || l.Receive(now, feature.Message{}) {
		t.Error("another packet was taken")
	}
	sw.Err = errors.New("busy")
	if err := l.Tick(context.Background(), now); err == nil || !strings.Contains(err.Error(), "poll of port 4: busy") {
		t.Errorf("error = %v", err)
	}
}

func TestNoPolls(t *testing.T) {
	for _, edit := range [][2]string{
		{"poll_interval: 100ms", `poll_interval: "off"`},
		{"priority_queues: 8 ", "priority_queues: 7 "},
	} {
		env := testenv.New(t, "../../..", func(s string) string { return strings.Replace(s, edit[0], edit[1], 1) })
		if l := New(nil).Attach(env, &testenv.Switch{Switch: "spine2"}); l != nil {
			t.Errorf("%s polls", edit[1])
		}
	}
}

// TestTofino: reports come up by the chip's CPU port, and have no account of the buffer.
func TestTofino(t *testing.T) {
	for target, cpu := range map[string]uint32{"tofino1": 320, "tofino2": 0, "tofino1, cpu_port: 192": 192} {
		env := testenv.New(t, "../../..", func(s string) string {
			return strings.Replace(s, `"127.0.0.1:9551", target: embedded`, `"127.0.0.1:9551", target: `+target, 1)
		})
		env = testenv.On(env, testenv.Tofino(t, env.Config.Switch("leaf1").Target.Chip()))
		hub, sw := &testenv.Hub{}, &testenv.Switch{Switch: "leaf1"}
		f := New(hub)
		if lines := testenv.Lines(t, f, env, "leaf1"); len(lines) != 1 || lines[0] != fmt.Sprintf("clone session %d → ports %d", ids.PollCloneSession, cpu) {
			t.Errorf("%s wants %v", target, lines)
		}
		l := f.Attach(env, sw)
		if err := l.Tick(context.Background(), time.Now()); err != nil || len(sw.Out) != 4 {
			t.Fatalf("%s: %d polls, %v", target, len(sw.Out), err)
		}
		for _, r := range []pollreport.Report{
			{Port: 3, PortOnly: true, DepartedBytes: 5},
			{Port: 3, PortOnly: true, DepartedBytes: 5, Estimate: &pollreport.Estimate{Queue: 7, Headroom: 100}},
		} {
			hub.Samples = nil
			m := feature.Message{Packet: &pipeline.PacketIn{
				Fields: map[string]uint64{"reason": ids.PacketInPoll}, Payload: append(r.Append(nil), sw.Out[2].GetPayload()...),
			}}
			if !l.Receive(time.Now(), m) || len(hub.Samples) != 1 || hub.Samples[0].Port != 3 || hub.Samples[0].DepartureBytes != 5 {
				t.Errorf("%s: report %+v made %+v", target, r, hub.Samples)
			}
		}
	}
}
