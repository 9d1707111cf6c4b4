package controller

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/device"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/units"
)

// links knows the state of links and switches, as far as routes depend on it. P4Runtime
// has no port state, so it is put together from four sources: the operator's word
// (SetLink), which takes a link out of service for good; what switches with gNMI say of
// their ports, of which one that is down makes its link suspect at once; probes, whose
// absence in either direction makes a link suspect while both of its switches are attached;
// and sessions, since a switch that has been out of reach for long may be dead, and one whose
// process has ended is. Probes cannot tell these two: they come and go by the sessions of both
// switches. Routes avoid what is suspect where there is another way.
//
// All of it is under mu.
type links struct {
	event  func(view.Event)
	change func()
	keeper LinkKeeper    // nil: the operator's word is forgotten with the process
	told   chan struct{} // a switch said something of its ports, which is to be judged; holds one token

	mu       sync.Mutex
	down     map[string]bool                      // by the operator, by link; kept over configurations
	suspect  map[string]bool                      // by ports and probes, by link
	cut      map[string]bool                      // links of hosts whose port is down
	verdicts map[string]verdict                   // what ports and probes said when they were judged last, by link
	reports  map[string]map[uint32]view.PortState // what switches say of their ports
	arrivals map[direction]time.Time              // last probe, on the monotonic clock
	dead     map[string]bool                      // switches out of reach for long
	lost     map[string]time.Time                 // since when a switch is out of reach
	flaps    map[string]flap                      // of links that went down lately
	moved    bool                                 // routes change without an event
	judged   time.Time                            // when all of it was judged last
	awake    time.Time                            // since when it has been judged without a break
}

// OutOfService is why a link is down that an operator took out of service.
const OutOfService = "an operator took it out of service"

// verdict is what is known of a link, and why it is down.
type verdict struct {
	state view.PortState
	why   string
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
		event: event, change: change, keeper: keeper, told: make(chan struct{}, 1), down: map[string]bool{}, suspect: map[string]bool{},
		cut: map[string]bool{}, verdicts: map[string]verdict{}, reports: map[string]map[uint32]view.PortState{},
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

// report notes all that a switch says of its ports, nil when it says nothing.
func (l *links) report(sw string, ports map[uint32]view.PortState) {
	l.mu.Lock()
	if l.reports[sw] = ports; ports == nil {
		delete(l.reports, sw)
	}
	l.mu.Unlock()
	select {
	case l.told <- struct{}{}:
	default:
	}
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
	for _, m := range []map[string]bool{l.suspect, l.cut} {
		maps.DeleteFunc(m, func(name string, _ bool) bool { return !known[name] })
	}
	maps.DeleteFunc(l.flaps, func(name string, _ flap) bool { return !known[name] })
	gone := func(sw string) bool { return c.Switch(sw) == nil }
	maps.DeleteFunc(l.arrivals, func(d direction, _ time.Time) bool { return !known[d.link] || gone(d.at) })
	maps.DeleteFunc(l.reports, func(sw string, _ map[uint32]view.PortState) bool { return gone(sw) })
	maps.DeleteFunc(l.dead, func(sw string, _ bool) bool { return gone(sw) })
	maps.DeleteFunc(l.lost, func(sw string, _ time.Time) bool { return gone(sw) })
	return err
}

// state returns a copy for the computation of routes.
func (l *links) state() topology.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := topology.State{DownLinks: maps.Clone(l.down), SuspectLinks: maps.Clone(l.suspect), HeldLinks: map[string]bool{}, SuspectSwitches: maps.Clone(l.dead)}
	for name := range l.suspect {
		if !l.flaps[name].back.IsZero() {
			s.HeldLinks[name] = true
			delete(s.SuspectLinks, name)
		}
	}
	return s
}

// port returns what is known of the ports at both ends of a link, and whether an operator took
// the link out of service.
func (l *links) port(link string) (v verdict, outOfService bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down[link] {
		return verdict{view.PortDown, OutOfService}, true
	}
	return l.verdicts[link], false
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
	clear(l.verdicts)
	for i := range c.Links {
		k := &c.Links[i]
		one := l.judgeLink
		if k.A.Port == 0 || k.B.Port == 0 {
			one = l.judgeHost
		}
		if e, ok := one(k, switches, &c.Controller, now); ok {
			happened = append(happened, e)
		}
	}
	moved := l.moved
	l.moved = false
	l.mu.Unlock()
	for _, e := range happened {
		l.event(e)
	}
	if len(happened) > 0 || moved {
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

// closed names the end of a link whose switch says that its port is down, "" for none; open reports
// whether there is none, and a switch says that its port is up.
func (l *links) closed(k *config.Link) (closed string, open bool) {
	for _, e := range []config.Endpoint{k.A, k.B} {
		if e.Port == 0 {
			continue
		}
		switch l.reports[e.Node][e.Port] {
		case view.PortDown:
			return e.String(), false
		case view.PortUp:
			open = true
		}
	}
	return "", open
}

// judgeHost tells of the port of a host's link. Routes stay, as they have no other way.
func (l *links) judgeHost(k *config.Link, _ map[string]device.Health, _ *config.Controller, _ time.Time) (view.Event, bool) {
	closed, open := l.closed(k)
	host := k.A.Node
	if k.A.Port != 0 {
		host = k.B.Node
	}
	switch {
	case closed != "":
		l.verdicts[k.Name] = verdict{view.PortDown, "the port " + closed + " is down, says its switch"}
		if l.cut[k.Name] {
			return view.Event{}, false
		}
		l.cut[k.Name] = true
		return view.Event{
			Severity: view.Error, Subject: k.Name, Kind: "link.down",
			Message: fmt.Sprintf("the port %s is down, says its switch: %s is cut off", closed, host),
		}, true
	case open:
		l.verdicts[k.Name] = verdict{state: view.PortUp}
		if !l.cut[k.Name] {
			return view.Event{}, false
		}
		delete(l.cut, k.Name)
		return view.Event{Severity: view.Info, Subject: k.Name, Kind: "link.up", Message: "the port is up, says its switch"}, true
	}
	return view.Event{}, false // the verdict stays
}

// silent names the switch to which no probe of a link came for the timeout, "" for none. heard says that
// probes came to both lately, where none that is missing may still come.
func (l *links) silent(k *config.Link, since time.Time, timeout time.Duration, now time.Time) (silent string, heard bool) {
	if l.awake.After(since) {
		since = l.awake
	}
	heard = true
	for _, at := range []string{k.A.Node, k.B.Node} {
		last := l.arrivals[direction{k.Name, at}]
		if now.Sub(last) > timeout {
			heard = false
		}
		if since.After(last) {
			last = since
		}
		if now.Sub(last) > timeout {
			silent = at
		}
	}
	return silent, heard
}

// judgeLink judges a link between switches: by their ports, and by probes while both can send and
// receive them. It says nothing where neither tells.
func (l *links) judgeLink(k *config.Link, switches map[string]device.Health, c *config.Controller, now time.Time) (view.Event, bool) {
	closed, heard := l.closed(k)
	why, back := "", "its ports are up, say its switches"
	switch a, b := switches[k.A.Node].Attached, switches[k.B.Node].Attached; {
	case closed != "":
		why = "the port " + closed + " is down, says its switch"
		// What came before says nothing of the cable as it will be.
		delete(l.arrivals, direction{k.Name, k.A.Node})
		delete(l.arrivals, direction{k.Name, k.B.Node})
	case c.ProbeInterval <= 0 && heard:
	case c.ProbeInterval <= 0 || a.IsZero() || b.IsZero():
		return view.Event{}, false
	default:
		if b.After(a) {
			a = b
		}
		var silent string
		if silent, heard = l.silent(k, a, c.ProbeTimeout, now); silent != "" {
			why = fmt.Sprintf("no probe came to %s for %v", silent, c.ProbeTimeout)
		}
		back = "probes come again"
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
	if why != "" {
		l.verdicts[k.Name] = verdict{view.PortDown, why}
		if l.suspect[k.Name] {
			if !f.back.IsZero() {
				f = flap{downs: f.downs + 1} // while it was held, and better than others that are suspect
				l.moved = true
			}
			return view.Event{}, false
		}
		l.suspect[k.Name] = true
		f = flap{downs: f.downs + 1}
		return view.Event{
			Severity: view.Error, Subject: k.Name, Kind: "link.down", Message: why + "; routes avoid the link where they can",
		}, true
	}
	if heard {
		l.verdicts[k.Name] = verdict{state: view.PortUp}
	}
	switch {
	case l.suspect[k.Name] && !heard: // the grace period after an attachment proves nothing
		return view.Event{}, false
	case l.suspect[k.Name]:
		hold, first := f.hold(c), f.back.IsZero()
		if first {
			f.back = now
		}
		if now.Sub(f.back) < hold {
			l.verdicts[k.Name] = verdict{view.PortDown, "it is held, as it went down " + units.Count(f.downs, "time")}
			return view.Event{
				Severity: view.Warning, Subject: k.Name, Kind: "link.held",
				Message: fmt.Sprintf("%s after %s down; routes avoid the link for another %v, and longer with each time", back, units.Count(f.downs, "time"), hold),
			}, first
		}
		f.back = now
		delete(l.suspect, k.Name)
		return view.Event{Severity: view.Info, Subject: k.Name, Kind: "link.up", Message: back}, true
	case now.Sub(f.back) >= c.FlapHoldMax:
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
