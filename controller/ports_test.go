package controller

import (
	"maps"
	"slices"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/p4runtime/device"
)

// says makes a switch report the states of its ports 1 and 2.
func (j *monitor) says(sw string, one, two pb.PortStatus_State) {
	j.report(sw, map[uint32]pb.PortStatus_State{1: one, 2: two})
}

// TestPorts: routes leave a link at the next evaluation after one of its switches reports its port down,
// whatever probes show. Probes bring the link back.
func TestPorts(t *testing.T) {
	const up, down, unknown = pb.PortStatus_STATE_UP, pb.PortStatus_STATE_DOWN, pb.PortStatus_STATE_UNKNOWN
	j := newMonitor(t)
	suspects := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(j.state().SuspectLinks)); !slices.Equal(got, want) {
			t.Errorf("%v are suspect, want %v", got, want)
		}
	}
	j.both()
	j.says("a", up, up)
	j.says("b", up, unknown)
	j.after(0)
	j.is("all is well", up)
	j.says("b", down, unknown)
	j.after(0, "link.down")
	suspects("l")
	j.is("b has no carrier", down)
	if _, why, _ := j.portState("l"); why != "the port b:1 is down, says its switch" {
		t.Errorf("why: %s", why)
	}
	j.both() // probes in flight arrive, and prove nothing
	j.after(0)
	j.says("b", up, unknown)
	j.after(0)
	suspects("l")
	j.both()
	j.after(0, "link.up")
	suspects()
	// If a switch no longer reports, probes decide.
	j.says("b", down, unknown)
	j.after(0, "link.down")
	j.report("b", nil)
	j.after(time.Second)
	suspects("l")
	j.both()
	j.after(0, "link.up")
	// They also decide for a switch that returns while the other is not attached.
	j.says("a", down, up)
	j.health["b"] = device.Health{Forwards: true, Known: true}
	j.after(0, "link.down")
	j.says("a", up, up)
	j.after(time.Second)
	suspects("l")
	// Without probes only port states decide. One switch's report is enough if the other does not
	// report.
	j.c.Controller.ProbeInterval = 0
	j.after(0, "link.up")
	j.says("a", down, up)
	j.after(0, "link.down")
	j.report("a", nil)
	j.after(time.Hour)
	suspects("l")
}

// TestHostsPort: the switch's report decides on a host's port. Routes avoid the port if the host has another
// link.
func TestHostsPort(t *testing.T) {
	j := newMonitor(t)
	j.c.Controller.ProbeInterval = 0
	host := func(want pb.PortStatus_State) {
		t.Helper()
		if state, _, _ := j.portState("h"); state != want {
			t.Errorf("the host's port: %v, want %v", state, want)
		}
	}
	j.says("a", pb.PortStatus_STATE_UP, pb.PortStatus_STATE_UP)
	j.after(0)
	host(pb.PortStatus_STATE_UP)
	j.says("a", pb.PortStatus_STATE_UP, pb.PortStatus_STATE_DOWN)
	j.after(0, "link.down")
	host(pb.PortStatus_STATE_DOWN)
	j.after(time.Second)
	if s := j.state(); len(s.SuspectLinks) != 1 || !s.SuspectLinks["h"] || len(s.DownLinks) > 0 {
		t.Errorf("routes avoid %v %v, want h if they can", s.SuspectLinks, s.DownLinks)
	}
	j.report("a", nil)
	j.after(time.Second)
	host(pb.PortStatus_STATE_UNKNOWN)
	j.says("a", pb.PortStatus_STATE_UP, pb.PortStatus_STATE_UP)
	j.after(0, "link.up")
	host(pb.PortStatus_STATE_UP)
}

// TestPortFlaps: a link whose carrier flaps is held like one whose probes fail repeatedly.
func TestPortFlaps(t *testing.T) {
	j := newMonitor(t)
	j.c.Controller.FlapHold, j.c.Controller.FlapHoldMax = 2*time.Second, 5*time.Second
	j.both()
	for _, want := range []string{"link.up", "link.held"} {
		j.says("a", pb.PortStatus_STATE_DOWN, pb.PortStatus_STATE_UP)
		j.after(0, "link.down")
		j.says("a", pb.PortStatus_STATE_UP, pb.PortStatus_STATE_UP)
		j.both()
		j.after(0, want)
	}
	// A held link works. If the other links are down it is used, until it is down again.
	held := func(want bool) {
		t.Helper()
		if s := j.state(); s.HeldLinks["l"] != want || s.SuspectLinks["l"] == want {
			t.Errorf("held %v and suspect %v, want held: %v", s.HeldLinks, s.SuspectLinks, want)
		}
	}
	held(true)
	j.routes = 0
	j.says("a", pb.PortStatus_STATE_DOWN, pb.PortStatus_STATE_UP)
	j.after(0) // an event for every change of a flapping link would be noise
	held(false)
	if j.routes != 1 {
		t.Errorf("routes changed %d times, want once", j.routes)
	}
}
