package controller

import (
	"maps"
	"slices"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/p4runtime/device"
)

// says has a switch say of its ports 1 and 2 what they are.
func (j *monitor) says(sw string, one, two pb.PortStatus_State) {
	j.report(sw, map[uint32]pb.PortStatus_State{1: one, 2: two})
}

// TestPorts: a link is out of the routes when one of its switches says that its port is down, at the next
// verdict and whatever probes say, and comes back by probes.
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
	j.both() // what was under way comes, and proves nothing
	j.after(0)
	j.says("b", up, unknown)
	j.after(0)
	suspects("l")
	j.both()
	j.after(0, "link.up")
	suspects()
	// A switch that is not heard of any more leaves the verdict to probes.
	j.says("b", down, unknown)
	j.after(0, "link.down")
	j.report("b", nil)
	j.after(time.Second)
	suspects("l")
	j.both()
	j.after(0, "link.up")
	// So does one that comes back while the other is not attached.
	j.says("a", down, up)
	j.health["b"] = device.Health{Forwards: true, Known: true}
	j.after(0, "link.down")
	j.says("a", up, up)
	j.after(time.Second)
	suspects("l")
	// Without probes the ports are all there is, of one switch if the other says nothing.
	j.c.Controller.ProbeInterval = 0
	j.after(0, "link.up")
	j.says("a", down, up)
	j.after(0, "link.down")
	j.report("a", nil)
	j.after(time.Hour)
	suspects("l")
}

// TestHostsPort: of a host's port the switch's word is told. Routes avoid it where the host has another link.
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

// TestPortFlaps: a link whose carrier flaps is held as one whose probes do.
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
	// What is held works: where the other links do not it is used, until it is down again.
	held := func(want bool) {
		t.Helper()
		if s := j.state(); s.HeldLinks["l"] != want || s.SuspectLinks["l"] == want {
			t.Errorf("held %v and suspect %v, want held: %v", s.HeldLinks, s.SuspectLinks, want)
		}
	}
	held(true)
	j.routes = 0
	j.says("a", pb.PortStatus_STATE_DOWN, pb.PortStatus_STATE_UP)
	j.after(0) // who knows that it comes and goes need not hear it each time
	held(false)
	if j.routes != 1 {
		t.Errorf("routes changed %d times, want once", j.routes)
	}
}
