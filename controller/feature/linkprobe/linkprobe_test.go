package linkprobe

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/p4src/ids"
)

func arrival(port uint64, why uint64, frame []byte) feature.Message {
	return feature.Message{Packet: &pipeline.PacketIn{Fields: map[string]uint64{"ingress_port": port, "reason": why}, Payload: frame}}
}

func TestProbes(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	hub, sw := &testenv.Hub{}, &testenv.Switch{Switch: "leaf1"}
	f := New(hub)
	l := f.Attach(env, sw)
	if err := l.Tick(context.Background(), time.Now()); err != nil || len(sw.Out) != 2 {
		t.Fatalf("%d probes, %v, want one on each of ports 3 and 4", len(sw.Out), err)
	}
	m := sw.Out[1].GetMetadata()
	if pipeline.Number(m[0].Value) != 4 || pipeline.Number(m[1].Value) != 7 || pipeline.Number(m[2].Value) != ids.PacketOutPort {
		t.Errorf("probe = %v", sw.Out[1])
	}
	// spine1 receives what leaf1 sent out of port 3.
	spine := f.Attach(env, &testenv.Switch{Switch: "spine1"})
	if !spine.Receive(time.Now(), arrival(1, reason, sw.Out[0].GetPayload())) || !slices.Equal(hub.Seen, []string{"leaf1:3-spine1:1 at spine1"}) {
		t.Errorf("seen = %v", hub.Seen)
	}
	// On another port it is a cable in the wrong place, told once.
	spine.Receive(time.Now(), arrival(2, reason, sw.Out[0].GetPayload()))
	spine.Receive(time.Now(), arrival(2, reason, sw.Out[0].GetPayload()))
	if len(hub.Seen) != 1 || len(hub.Events) != 1 || hub.Events[0].Kind != "link.miswired" ||
		hub.Events[0].Message != "port 2 is connected to leaf1:3, the configuration says leaf2:3" {
		t.Errorf("events = %+v", hub.Events)
	}
	// Foreign LLDP is taken and ignored; other packets are left alone.
	foreign := probe{fabric: "other", node: "leaf1", port: 3}.encode(topology.MAC{2})
	if !spine.Receive(time.Now(), arrival(1, reason, foreign)) || !spine.Receive(time.Now(), arrival(1, reason, []byte("x"))) || len(hub.Seen) != 1 {
		t.Error("foreign LLDP counts")
	}
	if spine.Receive(time.Now(), arrival(1, ids.PacketInPoll, foreign)) {
		t.Error("another packet was taken")
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
	if lines := testenv.Lines(t, f, env, "leaf1"); len(lines) != 1 {
		t.Errorf("wants %v, want LLDP punted all the same", lines)
	}
}
