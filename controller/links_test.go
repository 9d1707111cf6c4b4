package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/view"
)

// judge is a links with a clock of its own and two switches a and b.
type judge struct {
	*links
	t      *testing.T
	c      *config.Config
	now    time.Time
	health map[string]health
	kinds  []string
}

func newJudge(t *testing.T) *judge {
	j := &judge{t: t, now: time.Unix(1000, 0), health: map[string]health{}}
	j.links = newLinks(func(e view.Event) { j.kinds = append(j.kinds, e.Kind) }, func() {})
	j.c = &config.Config{
		Switches: []config.Switch{{Name: "a"}, {Name: "b"}},
		Links: []config.Link{
			{Name: "l", A: config.Endpoint{Node: "a", Port: 1}, B: config.Endpoint{Node: "b", Port: 1}},
			{Name: "h", A: config.Endpoint{Node: "a", Port: 2}, B: config.Endpoint{Node: "h"}},
		},
		Controller: config.Controller{ProbeInterval: time.Second, ProbeTimeout: 3 * time.Second, UnreachableAfter: 5 * time.Second},
	}
	for _, s := range []string{"a", "b"} {
		j.health[s] = health{reachable: true, attached: j.now}
	}
	return j
}

// after advances the clock, judges, and expects these kinds of events.
func (j *judge) after(d time.Duration, want ...string) {
	j.t.Helper()
	j.now = j.now.Add(d)
	j.kinds = nil
	j.judge(j.c, j.health, j.now)
	if !slices.Equal(j.kinds, want) {
		j.t.Errorf("events = %v, want %v", j.kinds, want)
	}
}

func (j *judge) both() {
	j.seen("l", "a", j.now)
	j.seen("l", "b", j.now)
}

func TestProbeTimeout(t *testing.T) {
	j := newJudge(t)
	j.after(3 * time.Second)
	j.after(time.Second, "link.down")
	j.after(time.Second)
	if j.up("l") || !j.up("h") {
		t.Error("l should be down, and nothing else")
	}
	j.seen("l", "a", j.now)
	j.after(0) // one direction is not enough
	j.both()
	j.after(time.Second, "link.up")
	// One direction dies.
	j.seen("l", "b", j.now)
	j.after(3*time.Second, "link.down")
}

func TestNoVerdictWhileASwitchIsDetached(t *testing.T) {
	j := newJudge(t)
	j.both()
	j.health["b"] = health{reachable: true}
	j.after(time.Hour)
	// It comes back: the time begins anew.
	j.health["b"] = health{reachable: true, attached: j.now}
	j.after(3 * time.Second)
	j.after(time.Second, "link.down")
	// A new session alone does not make the link good.
	j.health["b"] = health{reachable: true, attached: j.now}
	j.after(time.Second)
	if j.up("l") {
		t.Error("the link is up without a probe")
	}
}

func TestUnreachableAfter(t *testing.T) {
	j := newJudge(t)
	j.both()
	j.health["b"] = health{}
	j.after(time.Second)
	j.after(4 * time.Second)
	j.after(time.Second, "switch.unreachable")
	if s := j.state(); !s.SuspectSwitches["b"] || s.SuspectSwitches["a"] {
		t.Errorf("state = %+v", s)
	}
	j.health["b"] = health{reachable: true}
	j.after(time.Second, "switch.reachable")
	if s := j.state(); s.SuspectSwitches["b"] {
		t.Errorf("state = %+v", s)
	}
}

func TestOperatorsWordLasts(t *testing.T) {
	j := newJudge(t)
	if !j.set("l", false) || j.set("l", false) {
		t.Error("set does not tell what changed")
	}
	j.forget(j.c)
	if !j.state().DownLinks["l"] {
		t.Error("the link is forgotten")
	}
	j.c.Links = j.c.Links[1:]
	j.forget(j.c)
	if j.state().DownLinks["l"] {
		t.Error("the link is remembered")
	}
}
