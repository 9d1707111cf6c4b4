package controller

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/device"
	"github.com/headgate/headgate/controller/state/outcome"
)

// monitor is a linkMonitor with its own clock and two switches a and b.
type monitor struct {
	*linkMonitor
	t      *testing.T
	c      *config.Config
	now    time.Time
	health map[string]device.Health
	kinds  []string
	kept   keptLinks
	routes int // number of route changes
}

// keptLinks is a LinkKeeper.
type keptLinks map[string]bool

func (k keptLinks) DownLinks() []string { return slices.Collect(maps.Keys(k)) }

func (k keptLinks) SaveLinks(links map[string]bool, _ *outcome.Done) error {
	if _, bad := links["h"]; bad {
		return errors.New("disk full")
	}
	for name, down := range links {
		if k[name] = true; !down {
			delete(k, name)
		}
	}
	return nil
}

func newMonitor(t *testing.T) *monitor {
	j := &monitor{t: t, kept: keptLinks{}, now: time.Unix(1000, 0), health: map[string]device.Health{}}
	j.linkMonitor = newLinkMonitor(func(e *pb.Event) { j.kinds = append(j.kinds, e.Kind) }, j.kept)
	j.c = &config.Config{
		Switches: []config.Switch{{Name: "a"}, {Name: "b"}},
		Links: []config.Link{
			{Name: "l", A: config.Endpoint{Node: "a", Port: 1}, B: config.Endpoint{Node: "b", Port: 1}},
			{Name: "h", A: config.Endpoint{Node: "a", Port: 2}, B: config.Endpoint{Node: "h"}},
		},
		Controller: config.Controller{ProbeInterval: time.Second, ProbeTimeout: 3 * time.Second, UnreachableAfter: 5 * time.Second},
	}
	for _, s := range []string{"a", "b"} {
		j.health[s] = device.Health{Forwards: true, Known: true, Attached: j.now}
	}
	if err := j.forget(j.c); err != nil { // as an applied configuration does
		t.Fatal(err)
	}
	return j
}

// look evaluates once.
func (j *monitor) look() {
	if j.evaluate(j.c, maps.All(j.health), j.now) {
		j.routes++
	}
}

// after advances the clock, evaluates like the controller, and expects events of these kinds.
func (j *monitor) after(d time.Duration, want ...string) {
	j.t.Helper()
	j.kinds = nil
	for end := j.now.Add(d); j.now.Before(end); {
		j.now = j.now.Add(min(healthInterval, end.Sub(j.now)))
		j.look()
	}
	j.look()
	if !slices.Equal(j.kinds, want) {
		j.t.Errorf("events = %v, want %v", j.kinds, want)
	}
}

func (j *monitor) is(when string, want pb.PortStatus_State) {
	j.t.Helper()
	if got, why, _ := j.portState("l"); got != want || (why == "") != (want != pb.PortStatus_STATE_DOWN) {
		j.t.Errorf("%s: %v %s, want %v", when, got, why, want)
	}
}

func (j *monitor) both() {
	j.seen("l", "a", j.now)
	j.seen("l", "b", j.now)
}

func TestProbeTimeout(t *testing.T) {
	j := newMonitor(t)
	j.is("at first", pb.PortStatus_STATE_UNKNOWN)
	j.after(3 * time.Second)
	j.is("nothing came yet", pb.PortStatus_STATE_UNKNOWN)
	j.after(time.Second, "link.down")
	j.is("nothing came", pb.PortStatus_STATE_DOWN)
	j.after(time.Second)
	if s := j.state(); !s.SuspectLinks["l"] || len(s.SuspectLinks) != 1 {
		t.Errorf("%v are down, want l and nothing else", s.SuspectLinks)
	}
	j.seen("l", "a", j.now)
	j.after(0) // one direction is not enough
	j.both()
	j.after(time.Second, "link.up")
	j.is("probes come", pb.PortStatus_STATE_UP)
	if got, _, _ := j.portState("h"); got != pb.PortStatus_STATE_UNKNOWN {
		t.Error("the state of a host's port is known")
	}
	// One direction dies.
	j.seen("l", "b", j.now)
	j.after(3*time.Second, "link.down")
}

func TestNoVerdictWhileASwitchIsDetached(t *testing.T) {
	j := newMonitor(t)
	j.both()
	j.health["b"] = device.Health{Forwards: true, Known: true}
	j.after(time.Hour)
	j.is("one switch is away", pb.PortStatus_STATE_UNKNOWN)
	// It comes back: the wait starts again.
	j.health["b"] = device.Health{Forwards: true, Known: true, Attached: j.now}
	j.after(3 * time.Second)
	j.after(time.Second, "link.down")
	// A new session alone does not make the link good.
	j.health["b"] = device.Health{Forwards: true, Known: true, Attached: j.now}
	j.after(time.Second)
	if !j.state().SuspectLinks["l"] {
		t.Error("the link is up without a probe")
	}
}

// TestFlaps: a link that fails repeatedly is kept out of the routes, longer each time, until it was
// up for long enough.
func TestFlaps(t *testing.T) {
	j := newMonitor(t)
	j.c.Controller.FlapHold, j.c.Controller.FlapHoldMax = 2*time.Second, 5*time.Second
	// up delivers probes for a time.
	up := func(d time.Duration, want ...string) {
		t.Helper()
		var kinds []string
		for end := j.now.Add(d); j.now.Before(end); {
			j.both()
			j.kinds = nil
			j.now = j.now.Add(healthInterval)
			j.look()
			kinds = append(kinds, j.kinds...)
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("events %v, want %v", kinds, want)
		}
	}
	down := 3*time.Second + healthInterval
	up(time.Second)
	j.after(down, "link.down")
	up(healthInterval, "link.up")
	j.after(down, "link.down")
	up(2*time.Second, "link.held")
	j.is("held", pb.PortStatus_STATE_DOWN)
	up(healthInterval, "link.up")
	j.is("up", pb.PortStatus_STATE_UP)
	j.after(down, "link.down")
	up(time.Second, "link.held")
	j.after(down) // it fails again while it is held
	up(5*time.Second, "link.held")
	up(healthInterval, "link.up")
	up(5 * time.Second)
	j.after(down, "link.down")
	up(healthInterval, "link.up")
	// Without a hold time every change counts.
	j.c.Controller.FlapHold = -1
	for range 3 {
		j.after(down, "link.down")
		up(healthInterval, "link.up")
	}
}

// TestStandstill: a controller that was frozen or had no processor has missed probes; links and
// switches get their whole timeouts again.
func TestStandstill(t *testing.T) {
	j := newMonitor(t)
	j.both()
	j.after(time.Second)
	j.health["b"] = device.Health{Known: true, Attached: j.now}
	j.after(time.Second)
	j.now = j.now.Add(20 * time.Second) // frozen
	j.after(2 * time.Second)
	j.is("nothing came yet", pb.PortStatus_STATE_UNKNOWN)
	j.both()
	j.after(2 * time.Second)
	j.is("probes come again", pb.PortStatus_STATE_UP)
	j.seen("l", "a", j.now)
	j.after(2*time.Second, "switch.unreachable", "link.down")
}

func TestUnreachableAfter(t *testing.T) {
	j := newMonitor(t)
	j.both()
	j.health["b"] = device.Health{Known: true}
	j.after(time.Second)
	j.after(4 * time.Second)
	j.after(time.Second, "switch.unreachable")
	if s := j.state(); !s.SuspectSwitches["b"] || s.SuspectSwitches["a"] {
		t.Errorf("state = %+v", s)
	}
	// The switch is back but empty, until it has its program and entries.
	j.health["b"] = device.Health{}
	j.after(time.Second)
	j.health["b"] = device.Health{Known: true} // it refuses the program
	j.after(time.Second)
	if s := j.state(); !s.SuspectSwitches["b"] {
		t.Errorf("routes lead over a switch without a program: %+v", s)
	}
	j.health["b"] = device.Health{Forwards: true, Known: true}
	j.after(time.Second, "switch.reachable")
	if s := j.state(); s.SuspectSwitches["b"] {
		t.Errorf("state = %+v", s)
	}
}

// TestGone: routes leave a switch at the next evaluation after its process has ended. They return
// when it has its desired state. Probes do not affect its links meanwhile.
func TestGone(t *testing.T) {
	j := newMonitor(t)
	j.both()
	j.health["b"] = device.Health{Known: true, Gone: true, Reached: true}
	j.after(healthInterval, "switch.unreachable")
	if s := j.state(); !s.SuspectSwitches["b"] || len(s.SuspectLinks) != 0 {
		t.Errorf("state = %+v", s)
	}
	j.health["b"] = device.Health{Known: true} // another process listens
	j.after(healthInterval)
	j.health["b"] = device.Health{Forwards: true, Known: true, Attached: j.now}
	j.after(healthInterval, "switch.reachable")
	j.c.Controller.UnreachableAfter = -1 // never
	j.health["b"] = device.Health{Known: true, Gone: true}
	j.after(healthInterval)
}

func TestOperatorsWordLasts(t *testing.T) {
	j := newMonitor(t)
	for i, want := range []bool{true, false} {
		if changed, err := j.set([]string{"l"}, false, nil); len(changed) == 1 != want || err != nil {
			t.Errorf("set %d: %v, %v", i, changed, err)
		}
	}
	if changed, err := j.set([]string{"m", "h"}, false, nil); len(changed) > 0 || err == nil || j.state().DownLinks["h"] || j.state().DownLinks["m"] {
		t.Errorf("set while the store fails: %v, %v", changed, err)
	}
	j.is("the operator's word", pb.PortStatus_STATE_DOWN)
	restarted := newLinkMonitor(nil, j.kept)
	if !restarted.state().DownLinks["l"] {
		t.Errorf("after a restart: %v", restarted.state())
	}
	if err := j.forget(j.c); err != nil || !j.state().DownLinks["l"] {
		t.Error("the link is forgotten")
	}
	j.c.Links = j.c.Links[1:]
	if err := j.forget(j.c); err != nil || j.state().DownLinks["l"] || len(j.kept) != 0 {
		t.Error("the link is remembered")
	}
}

// TestMonotonic: a step of the wall clock does not make links look dead.
func TestMonotonic(t *testing.T) {
	j := newMonitor(t)
	now := time.Now()
	j.seen("l", "a", now)
	if got := j.links["l"].probes[0]; got.String() != now.String() {
		t.Errorf("the probe of %v is noted as %v, which has no monotonic part", now, got)
	}
}

// slowLinks is a store whose writes begin, and end on a signal.
type slowLinks struct{ began, end chan struct{} }

func (slowLinks) DownLinks() []string { return nil }

func (k slowLinks) SaveLinks(map[string]bool, *outcome.Done) error {
	k.began <- struct{}{}
	<-k.end
	return nil
}

// TestProbesWaitForNoWrite: while an operator's change of a link, or the end of one, is written to a slow store, probes
// of all links still count and ports are still reported.
func TestProbesWaitForNoWrite(t *testing.T) {
	k := slowLinks{make(chan struct{}), make(chan struct{})}
	m := newLinkMonitor(func(*pb.Event) {}, k)
	for name, write := range map[string]func() error{
		"set":    func() error { _, err := m.set([]string{"a-b"}, false, nil); return err },
		"forget": func() error { return m.forget(&config.Config{}) },
	} {
		m.mu.Lock()
		m.link("a-b").disabled = name == "forget"
		m.mu.Unlock()
		written := make(chan error, 1)
		go func() { written <- write() }()
		<-k.began
		noted := make(chan struct{})
		go func() {
			m.seen("c-d", "c", time.Now())
			m.report("c", nil)
			m.state()
			close(noted)
		}()
		select {
		case <-noted:
		case <-time.After(5 * time.Second):
			t.Errorf("%s: probes wait for the store", name)
		}
		k.end <- struct{}{}
		if err := <-written; err != nil {
			t.Error(err)
		}
		<-noted
	}
}

// TestNeverReached: a switch that was never reached is not reported as ended.
func TestNeverReached(t *testing.T) {
	for reached, want := range map[bool]string{false: "never reached: nothing listens", true: "its process has ended"} {
		var got string
		m := newLinkMonitor(func(e *pb.Event) { got = e.Message }, nil)
		c := &config.Config{Switches: []config.Switch{{Name: "s"}}, Controller: config.Controller{UnreachableAfter: time.Second}}
		m.evaluate(c, maps.All(map[string]device.Health{"s": {Known: true, Gone: true, Reached: reached}}), time.Unix(1000, 0))
		if !strings.Contains(got, want) {
			t.Errorf("reached %v: %q, want %q", reached, got, want)
		}
	}
}
