package lldp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/p4src/ids"
)

func arrival(port uint64, why uint64, frame []byte) feature.Message {
	return feature.Message{Packet: &pipeline.PacketIn{Fields: map[string]uint64{"ingress_port": port, "reason": why}, Payload: frame}}
}

func TestProbes(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	callbacks, sw := &testenv.Callbacks{}, &testenv.Switch{Switch: "leaf1"}
	f := New(callbacks)
	l := f.Attach(testenv.AtSwitch(env, sw.Name()), sw)
	if err := l.Tick(context.Background(), time.Now()); err != nil || len(sw.Out) != 2 {
		t.Fatalf("%d probes, %v, want one on each of ports 3 and 4", len(sw.Out), err)
	}
	m := sw.Out[1].GetMetadata()
	if bytestring.Low64(m[0].Value) != 4 || bytestring.Low64(m[1].Value) != 7 || bytestring.Low64(m[2].Value) != ids.PacketOutPort {
		t.Errorf("probe = %v", sw.Out[1])
	}
	// spine1 receives leaf1's probe from port 3.
	spine := f.Attach(testenv.AtSwitch(env, "spine1"), &testenv.Switch{Switch: "spine1"})
	spine.Receive(time.Now(), arrival(1, feature.ProbeReason, sw.Out[0].GetPayload()))
	if !slices.Equal(callbacks.Seen, []string{"leaf1:3-spine1:1 at spine1"}) {
		t.Errorf("seen = %v", callbacks.Seen)
	}
	// On another port it shows a wrong cable, which is reported once.
	spine.Receive(time.Now(), arrival(2, feature.ProbeReason, sw.Out[0].GetPayload()))
	spine.Receive(time.Now(), arrival(2, feature.ProbeReason, sw.Out[0].GetPayload()))
	if len(callbacks.Seen) != 1 || len(callbacks.Events) != 1 || callbacks.Events[0].Kind != "link.miswired" ||
		callbacks.Events[0].Message != "port 2 is connected to leaf1:3, the configuration says leaf2:3" {
		t.Errorf("events = %+v", callbacks.Events)
	}
	// A host that invents neighbours does not fill the events either.
	for i := range 100 {
		made := probe{fabric: env.Config.Name, node: fmt.Sprint("switch", i), port: 1}.encode(topology.MAC{2})
		spine.Receive(time.Now(), arrival(2, feature.ProbeReason, made))
		spine.Receive(time.Now(), arrival(9, feature.ProbeReason, made))
	}
	if len(callbacks.Events) != 2 || callbacks.Events[1].Message != "port 9 is connected to switch0:1, the configuration says nothing" {
		t.Errorf("events = %+v", callbacks.Events)
	}
	right := probe{fabric: env.Config.Name, node: "leaf2", port: 3}.encode(topology.MAC{2})
	for range 2 {
		spine.Receive(time.Now(), arrival(2, feature.ProbeReason, right))
	}
	if len(callbacks.Events) != 3 || callbacks.Events[2].Kind != "link.miswired_over" || callbacks.Events[2].Port != 2 {
		t.Errorf("events = %+v", callbacks.Events)
	}
	callbacks.Seen = callbacks.Seen[:1]
	// LLDP of other systems and other packets are ignored.
	foreign := probe{fabric: "other", node: "leaf1", port: 3}.encode(topology.MAC{2})
	spine.Receive(time.Now(), arrival(1, feature.ProbeReason, foreign))
	spine.Receive(time.Now(), arrival(1, feature.ProbeReason, []byte("x")))
	spine.Receive(time.Now(), arrival(1, feature.ProbeReason+1, sw.Out[0].GetPayload()))
	spine.Receive(time.Now(), feature.Message{})
	if len(callbacks.Seen) != 1 {
		t.Errorf("seen = %v", callbacks.Seen)
	}
}

func TestNoProbes(t *testing.T) {
	env := testenv.New(t, "../../..", func(s string) string {
		return strings.Replace(s, "probe_interval: 500ms", `probe_interval: "off"`, 1)
	})
	f := New(nil)
	if l := f.Attach(env, &testenv.Switch{Switch: "leaf1"}); l != nil {
		t.Error("it probes")
	}
	if lines := testenv.Lines(t, f, env, "leaf1"); len(lines) != 2 {
		t.Errorf("wants %v, want LLDP punted and limited all the same", lines)
	}
}

func TestPuntLimit(t *testing.T) {
	for _, tt := range []struct{ section, want string }{
		{"", "interval=10000, tolerance=990000"},
		{"punt: {rate: 3, burst: 1}", "interval=333334, tolerance=0"},
		{"punt: {rate: 1, burst: 1000}", "interval=1000000, tolerance=999000000"},
		{"punt: {rate: 0}", "interval=0, tolerance=0"},
	} {
		f := New(nil)
		env := testenv.New(t, "../../..", func(s string) string {
			before, rest, _ := strings.Cut(s, "punt:")
			_, after, _ := strings.Cut(rest, "prioplus:")
			return before + tt.section + "\nprioplus:" + after
		}, f)
		want := "ingress.punt.punt_limit default → set_punt_limit(" + tt.want + ")"
		if lines := testenv.Lines(t, f, env, "leaf1"); !slices.Contains(lines, want) {
			t.Errorf("%q wants %v, want %s", tt.section, lines, want)
		}
	}
}
