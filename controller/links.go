package controller

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/device"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/units"
)

// links knows the state of links and switches, as far as routes depend on it. P4Runtime
// has no port state, so it is put together from three sources: the operator's word
// (SetLink), which takes a link out of service for good; probes, whose absence in either
// direction makes a link suspect while both of its switches are attached; and sessions,
// since a switch that has been out of reach for long may be dead, and one whose process has
// ended is. Probes cannot tell these two: they come and go by the sessions of both switches.
// Routes avoid what is suspect where there is another way.
//
// All of it is under mu.
type links struct {
	event  func(view.Event)
	change func()
	keeper LinkKeeper // nil: the operator's word is forgotten with the process

	mu       sync.Mutex
	down     map[string]bool           // by the operator, by link; kept over configurations
	suspect  map[string]bool           // by probes, by link
	probed   map[string]view.PortState // what probes said when they were judged last, by link
	arrivals map[direction]time.Time   // last probe, on the monotonic clock
	dead     map[string]bool           // switches out of reach for long
	lost     map[string]time.Time      // since when a switch is out of reach
	flaps    map[string]flap           // of links that went down lately
	judged   time.Time                 // when all of it was judged last
	awake    time.Time                 // since when it has been judged without a break
}

// LinkKeeper makes the operator's word on links durable.
type LinkKeeper interface {
	// DownLinks returns the links that are out of service, by name.
	DownLinks() []string
	SaveLink(name string, down bool) error
}

// direction is a link as seen by the switch that receives.
type direction struct{ link, at string }

func newLinks(event func(view.Event), change func(), keeper LinkKeeper) *links {
	l := &links{
		event: event, change: change, keeper: keeper, down: map[string]bool{}, suspect: map[string]bool{}, probed: map[string]view.PortState{},
		arrivals: map[direction]time.Time{}, dead: map[string]bool{}, lost: map[string]time.Time{}, flaps: map[string]flap{},
	}
	if keeper == nil {
		return l
	}
	for _, name := range keeper.DownLinks() {
		l.down[name] = true
	}
	return l
}

// seen notes a probe.
func (l *links) seen(link, at string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals[direction{link, at}] = now
}

// set is the operator's word; it reports whether it changed anything.
func (l *links) set(link string, up bool) (changed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down[link] != up {
		return false, nil
	}
	if l.keeper != nil {
		if err := l.keeper.SaveLink(link, !up); err != nil {
			return false, fmt.Errorf("the link %s stays as it is, the state store failed: %w", link, err)
		}
	}
	if up {
		delete(l.down, link)
	} else {
		l.down[link] = true
	}
	return true, nil
}

// forget drops what is known of links and switches that a new configuration lacks.
func (l *links) forget(c *config.Config) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[string]bool{}
	for _, k := range c.Links {
		known[k.Name] = true
	}
	for name := range l.down {
		if known[name] {
			continue
		}
		delete(l.down, name)
		if l.keeper != nil {
			err = errors.Join(err, l.keeper.SaveLink(name, false))
		}
	}
	for name := range l.suspect {
		if !known[name] {
			delete(l.suspect, name)
		}
	}
	for name := range l.flaps {
		if !known[name] {
			delete(l.flaps, name)
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
	return err
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

// port returns what is known of the ports at both ends of a link, and whether an operator took
// the link out of service.
func (l *links) port(link string) (state view.PortState, outOfService bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down[link] {
		return view.PortDown, true
	}
	return l.probed[link], false
}

// standstill is a break between two verdicts after which the controller itself has stood still,
// frozen or short of processor time. What it has not heard then it could not hear.
const standstill = 4 * healthInterval

// judge looks at everything once and asks for new routes when a verdict changed. After a
// standstill all times begin anew.
func (l *links) judge(c *config.Config, switches map[string]device.Health, now time.Time) {
	l.mu.Lock()
	if now.Sub(l.judged) > standstill {
		l.awake = now
	}
	l.judged = now
	var happened []view.Event
	for name, h := range switches {
		if e, ok := l.judgeSwitch(name, h, c.Controller.UnreachableAfter, now); ok {
			happened = append(happened, e)
		}
	}
	clear(l.probed)
	if c.Controller.ProbeInterval > 0 {
		for i := range c.Links {
			if e, ok := l.judgeLink(&c.Links[i], switches, &c.Controller, now); ok {
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

func (l *links) judgeSwitch(name string, h device.Health, after time.Duration, now time.Time) (view.Event, bool) {
	switch {
	case !h.Known:
		return view.Event{}, false // the verdict stays
	case h.Forwards:
		delete(l.lost, name)
		if !l.dead[name] {
			return view.Event{}, false
		}
		delete(l.dead, name)
		return view.Event{Severity: view.Info, Subject: name, Kind: "switch.reachable", Message: "the switch holds what it should; routes use it again"}, true
	case l.lost[name].Before(l.awake):
		l.lost[name] = now
	}
	if after <= 0 || l.dead[name] || now.Sub(l.lost[name]) < after && !h.Gone {
		return view.Event{}, false
	}
	l.dead[name] = true
	if h.Gone {
		return view.Event{
			Severity: view.Error, Subject: name, Kind: "switch.unreachable",
			Message: "nothing listens at its address: its process has ended, and forwards no more; routes avoid the switch where they can",
		}, true
	}
	return view.Event{
		Severity: view.Error, Subject: name, Kind: "switch.unreachable",
		Message: fmt.Sprintf("out of reach, or without its program and entries, for %v; routes avoid the switch where they can", after),
	}, true
}

// judgeLink says nothing while one of the switches cannot send or receive probes: that is
// not the link's fault.
func (l *links) judgeLink(k *config.Link, switches map[string]device.Health, c *config.Controller, now time.Time) (view.Event, bool) {
	if k.A.Port == 0 || k.B.Port == 0 {
		return view.Event{}, false // a host is there, which sends no probes
	}
	timeout := c.ProbeTimeout
	a, b := switches[k.A.Node].Attached, switches[k.B.Node].Attached
	if a.IsZero() || b.IsZero() {
		return view.Event{}, false
	}
	since := l.awake
	for _, t := range []time.Time{a, b} {
		if t.After(since) {
			since = t
		}
	}
	silent := ""
	l.probed[k.Name] = view.PortUp
	for _, at := range []string{k.A.Node, k.B.Node} {
		last := l.arrivals[direction{k.Name, at}]
		if now.Sub(last) > timeout {
			l.probed[k.Name] = view.PortUnknown // as long as it may still come
		}
		if since.After(last) {
			last = since
		}
		if now.Sub(last) > timeout {
			silent = at
		}
	}
	if silent != "" {
		l.probed[k.Name] = view.PortDown
	}
	f, flapped := l.flaps[k.Name]
	defer func() {
		switch {
		case f.downs > 0:
			l.flaps[k.Name] = f
		case flapped:
			delete(l.flaps, k.Name)
		}
	}()
	switch {
	case silent != "" && !l.suspect[k.Name]:
		l.suspect[k.Name] = true
		f = flap{downs: f.downs + 1}
		return view.Event{
			Severity: view.Error, Subject: k.Name, Kind: "link.down",
			Message: fmt.Sprintf("no probe came to %s for %v; routes avoid the link where they can", silent, timeout),
		}, true
	case silent != "" && !f.back.IsZero():
		f = flap{downs: f.downs + 1} // while it was held
	case silent == "" && l.suspect[k.Name]:
		// The grace period after an attachment proves nothing: wait for a probe.
		for _, at := range []string{k.A.Node, k.B.Node} {
			if now.Sub(l.arrivals[direction{k.Name, at}]) > timeout {
				return view.Event{}, false
			}
		}
		hold := f.hold(c)
		if f.back.IsZero() {
			f.back = now
			if hold > 0 {
				l.probed[k.Name] = view.PortDown
				return view.Event{
					Severity: view.Warning, Subject: k.Name, Kind: "link.held",
					Message: fmt.Sprintf("probes come again after %s down; routes avoid the link for another %v, and longer with each time", units.Count(f.downs, "time"), hold),
				}, true
			}
		}
		if now.Sub(f.back) < hold {
			l.probed[k.Name] = view.PortDown
			return view.Event{}, false
		}
		f.back = now
		delete(l.suspect, k.Name)
		return view.Event{Severity: view.Info, Subject: k.Name, Kind: "link.up", Message: "probes come again"}, true
	case silent == "" && now.Sub(f.back) >= c.FlapHoldMax:
		f = flap{}
	}
	return view.Event{}, false
}

// flap is what is known of a link that goes down and comes back.
type flap struct {
	downs int       // until it was up for flap_hold_max
	back  time.Time // since when probes come again; zero while they do not
}

// hold is how long a link that comes back is not used: at once after the first time, then for
// flap_hold, and twice as long with each time more.
func (f flap) hold(c *config.Controller) time.Duration {
	if f.downs < 2 || c.FlapHold <= 0 {
		return 0
	}
	return min(c.FlapHold<<min(f.downs-2, 30), c.FlapHoldMax)
}
