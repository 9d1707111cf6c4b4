package controller

import (
	"context"
	"fmt"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/switchtest"
	"github.com/headgate/headgate/units"
)

// embedded is two real embedded switches, s1 and s2, joined by their ports 1 and 2. Their ports 3 are for hosts.
type embedded struct {
	loop      *clock.Loop
	switches  [2]*softswitch.Switch
	hosts     [2]*softswitch.Port
	links     [2]*softswitch.Link
	addresses [2]string
}

// newEmbedded runs the switches until the test ends.
func newEmbedded(t *testing.T) *embedded {
	t.Helper()
	e := &embedded{loop: clock.NewLoop()}
	var ports [2][2]*softswitch.Port
	for i := range e.switches {
		s, err := softswitch.NewOnLoop(e.loop, softswitch.Config{
			Name: fmt.Sprintf("s%d", i+1), DeviceID: uint64(i + 1), CPUPort: 510, Traffic: tm.Config{Queues: 8},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		for p := range 2 {
			if ports[i][p], err = s.AddPort(uint32(p+1), 100*units.Mbps); err != nil {
				t.Fatal(err)
			}
		}
		if e.hosts[i], err = s.AddPort(3, 100*units.Mbps); err != nil {
			t.Fatal(err)
		}
		addr, err := s.ServeGRPC(switchtest.Loopback(), nil)
		if err != nil {
			t.Fatal(err)
		}
		e.switches[i], e.addresses[i] = s, addr.String()
	}
	for p := range e.links {
		l, err := softswitch.Connect(e.loop, units.Millisecond, ports[0][p], ports[1][p])
		if err != nil {
			t.Fatal(err)
		}
		e.links[p] = l
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = e.loop.RunReal(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return e
}

// yaml is the switches' fabric file, with more sections.
func (e *embedded) yaml(more string) []byte {
	return fmt.Appendf(nil, `
name: two
switches:
  - {name: s1, device_id: 1, address: %q, target: embedded}
  - {name: s2, device_id: 2, address: %q, target: embedded}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links:
  - {a: "s1:1", b: "s2:1", rate: 100Mbps}
  - {a: "s1:2", b: "s2:2", rate: 100Mbps}
  - {a: "s1:3", b: h1, rate: 100Mbps}
  - {a: "s2:3", b: h2, rate: 100Mbps}
%s`, e.addresses[0], e.addresses[1], more)
}

// TestEmbeddedSwitches runs the controller with two real embedded switches that two links join. One
// link is cut.
func TestEmbeddedSwitches(t *testing.T) {
	e := newEmbedded(t)
	ctx, loop, list, links, addresses := t.Context(), e.loop, e.switches, e.links, e.addresses
	f := &fabric{t: t}
	f.c, f.stop = f.controller(options())
	defer f.stop()
	sub := f.c.Samples().Subscribe(events.Options[feature.Sample]{Match: func(s feature.Sample) bool { return s.Switch == "s1" && s.Port == 1 && s.DeparturePackets > 0 }})
	defer sub.Close()
	f.yaml = e.yaml(`qos: {ecn: [{queue: 1, kmin: 10KB, kmax: 100KB, pmax: 0.5}]}
controller: {poll_interval: 20ms, probe_interval: 20ms, probe_timeout: 1s}
`)
	for _, r := range f.apply() {
		if r.Error != "" || r.Inserted == 0 {
			t.Errorf("result = %+v", r)
		}
	}
	v := f.state("s1")
	supported := map[string]bool{}
	for _, c := range v.Capabilities {
		supported[c.Name] = c.Supported
	}
	if v.State != pb.SwitchStatus_STATE_READY || !supported["p4runtime"] || !supported["counter_read"] || !supported["telemetry.polls"] {
		t.Errorf("s1 = %+v", v)
	}
	total := uint64(0)
	for _, u := range v.Tables {
		if total += u.Entries; u.Size < u.Entries {
			t.Errorf("table %+v", u)
		}
	}
	if v.ElectionId != "1" || v.Program == 0 || total == 0 || total > uint64(v.Entries) {
		t.Errorf("s1 bids with %q for program %x, %d entries of %d in tables", v.ElectionId, v.Program, total, v.Entries)
	}
	// The probes also count as departures of the port.
	samples, _, err := sub.Next(ctx)
	if err != nil || samples[0].Peer != "s2" {
		t.Fatalf("samples = %+v, %v", samples, err)
	}
	plan, err := f.c.Plan(ctx, "f", f.yaml, 0)
	if err != nil || len(plan.Switches[0].Changes)+len(plan.Switches[1].Changes) != 0 {
		t.Errorf("plan of what is = %+v, %v", plan, err)
	}

	state := func(port int, want pb.PortStatus_State) func() bool {
		return func() bool { return f.state("s1").Ports[port].State == want }
	}
	loop.Post(func() { links[0].SetUp(false) })
	eventually(t, "the cut is seen", state(0, pb.PortStatus_STATE_DOWN))
	eventually(t, "routes over the other link", func() bool {
		plan, err := f.c.Plan(ctx, "f", f.yaml, 0)
		return err == nil && len(plan.Switches[0].Changes) == 0
	})
	loop.Post(func() { links[0].SetUp(true) })
	eventually(t, "the mend is seen", state(0, pb.PortStatus_STATE_UP))

	// The P4Runtime server dies and comes back: the switch has lost nothing, and the controller
	// pushes nothing again.
	pushes := f.c.Stats()["s1"].Pushes
	list[0].StopGRPC()
	f.becomes("s1", pb.SwitchStatus_STATE_DISCONNECTED)
	if err := f.c.SetLink(ctx, "s1:2", "s2", false); err != nil {
		t.Fatal(err)
	}
	if _, err := list[0].ServeGRPC(addresses[0], nil); err != nil {
		t.Fatal(err)
	}
	f.becomes("s1", pb.SwitchStatus_STATE_READY)
	if got := f.c.Stats()["s1"].Pushes; got != pushes {
		t.Errorf("%d pushes, want %d", got, pushes)
	}
	// Changes made meanwhile are now in the switch.
	plan, err = f.c.Plan(ctx, "f", f.yaml, 0)
	if err != nil || len(plan.Switches[0].Changes) != 0 || plan.Switches[0].Unreachable != "" {
		t.Errorf("plan = %+v, %v", plan.Switches[0], err)
	}
}
