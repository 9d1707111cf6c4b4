package controller

import (
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
)

// links knows the state of links and switches, as far as routes depend on it. P4Runtime
// has no port state, so it is put together from three sources: the operator's word
// (SetLink), which takes a link out of service for good; probes, whose absence in either
// direction makes a link suspect while both of its switches are attached; and sessions,
// since a switch that has been out of reach for long may be dead. Routes avoid what is
// suspect where there is another way.
//
// All of it is under mu.
type links struct {
	event  func(view.Event)
	change func()

	mu       sync.Mutex
	down     map[string]bool      // by the operator, by link; kept over configurations
	suspect  map[string]bool      // by probes, by link
	arrivals map[direction]int64  // last probe, Unix nanoseconds
	dead     map[string]bool      // switches out of reach for long
	lost     map[string]time.Time // since when a switch is out of reach
}

// direction is a link as seen by the switch that receives.
type direction struct{ link, at string }

func newLinks(event func(view.Event), change func()) *links {
	return &links{
		event: event, change: change, down: map[string]bool{}, suspect: map[string]bool{},
		arrivals: map[direction]int64{}, dead: map[string]bool{}, lost: map[string]time.Time{},
	}
}

// seen notes a probe.
func (l *links) seen(link, at string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals[direction{link, at}] = now.UnixNano()
}

// set is the operator's word; it reports whether it changed anything.
func (l *links) set(link string, up bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down[link] != up {
		return false
	}
	if up {
		delete(l.down, link)
	} else {
		l.down[link] = true
	}
	return true
}

// forget drops what is known of links and switches that a new configuration lacks.
func (l *links) forget(c *config.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[string]bool{}
	for _, k := range c.Links {
		known[k.Name] = true
	}
	for _, m := range []map[string]bool{l.down, l.suspect} {
		for name := range m {
			if !known[name] {
				delete(m, name)
			}
		}
	}
	for d := range l.arrivals {
		if !known[d.link] || c.Switch(d.at) == nil {
			delete(l.arrivals, d)
		}
	}
	for name := range l.dead {
		if c.Switch(name) == nil {
			delete(l.dead, name)
		}
	}
	for name := range l.lost {
		if c.Switch(name) == nil {
			delete(l.lost, name)
		}
	}
}

// state returns a copy for the computation of routes.
func (l *links) state() topology.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	copyOf := func(m map[string]bool) map[string]bool {
		c := make(map[string]bool, len(m))
		for k, v := range m {
			c[k] = v
		}
		return c
	}
	return topology.State{DownLinks: copyOf(l.down), SuspectLinks: copyOf(l.suspect), SuspectSwitches: copyOf(l.dead)}
}

// up reports whether routes may use a link without hesitation.
func (l *links) up(link string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.down[link] && !l.suspect[link]
}

// health is what one switch's device says.
type health struct {
	reachable bool
	attached  time.Time // zero: no probes go out
}

// judge looks at everything once and asks for new routes when a verdict changed.
func (l *links) judge(c *config.Config, switches map[string]health, now time.Time) {
	l.mu.Lock()
	var happened []view.Event
	for name, h := range switches {
		if e, ok := l.judgeSwitch(name, h, c.Controller.UnreachableAfter, now); ok {
			happened = append(happened, e)
		}
	}
	if c.Controller.ProbeInterval > 0 {
		for _, k := range c.Links {
			if e, ok := l.judgeLink(k, switches, c.Controller.ProbeTimeout, now); ok {
				happened = append(happened, e)
			}
		}
	}
	l.mu.Unlock()
	for _, e := range happened {
		l.event(e)
	}
	if len(happened) > 0 {
		l.change()
	}
}

func (l *links) judgeSwitch(name string, h health, after time.Duration, now time.Time) (view.Event, bool) {
	if h.reachable {
		delete(l.lost, name)
		if !l.dead[name] {
			return view.Event{}, false
		}
		delete(l.dead, name)
		return view.Event{Severity: view.Info, Subject: name, Kind: "switch.reachable", Message: "routes use the switch again"}, true
	}
	if l.lost[name].IsZero() {
		l.lost[name] = now
	}
	if after <= 0 || l.dead[name] || now.Sub(l.lost[name]) < after {
		return view.Event{}, false
	}
	l.dead[name] = true
	return view.Event{
		Severity: view.Error, Subject: name, Kind: "switch.unreachable",
		Message: fmt.Sprintf("out of reach for %v; routes avoid the switch where they can", after),
	}, true
}

// judgeLink says nothing while one of the switches cannot send or receive probes: that is
// not the link's fault.
func (l *links) judgeLink(k config.Link, switches map[string]health, timeout time.Duration, now time.Time) (view.Event, bool) {
	a, b := switches[k.A.Node].attached, switches[k.B.Node].attached
	if k.A.Port == 0 || k.B.Port == 0 || a.IsZero() || b.IsZero() {
		return view.Event{}, false
	}
	since := a
	if b.After(a) {
		since = b
	}
	silent := ""
	for _, at := range []string{k.A.Node, k.B.Node} {
		last := time.Unix(0, l.arrivals[direction{k.Name, at}])
		if since.After(last) {
			last = since
		}
		if now.Sub(last) > timeout {
			silent = at
		}
	}
	switch {
	case silent != "" && !l.suspect[k.Name]:
		l.suspect[k.Name] = true
		return view.Event{
			Severity: view.Error, Subject: k.Name, Kind: "link.down",
			Message: fmt.Sprintf("no probe came to %s for %v; routes avoid the link where they can", silent, timeout),
		}, true
	case silent == "" && l.suspect[k.Name]:
		// The grace period after an attachment proves nothing: wait for a probe.
		for _, at := range []string{k.A.Node, k.B.Node} {
			if now.Sub(time.Unix(0, l.arrivals[direction{k.Name, at}])) > timeout {
				return view.Event{}, false
			}
		}
		delete(l.suspect, k.Name)
		return view.Event{Severity: view.Info, Subject: k.Name, Kind: "link.up", Message: "probes come again"}, true
	}
	return view.Event{}, false
}
