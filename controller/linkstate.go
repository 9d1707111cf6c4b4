package controller

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/device"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/units"
)

// linkMonitor tracks the state of links and switches, as far as routes depend on it. P4Runtime has no port state, so
// the monitor combines four sources. An operator takes a link out of service until further notice (set). A switch
// with gNMI reports its ports; a port that is down makes its link suspect at once. Missing probes in either direction
// make a link suspect while both of its switches are attached. Sessions show that a switch is out of reach for long
// and may be dead, or that its process has ended; probes cannot show this, because they need the sessions of both
// switches. Routes avoid suspect links and switches if there is another path.
type linkMonitor struct {
	event    func(*pb.Event)
	keeper   LinkKeeper    // nil: the operator's settings are lost with the process
	reported chan struct{} // a switch reported its ports, so evaluate; holds one token

	mu        sync.Mutex // guards all below
	links     map[string]*linkState
	switches  map[string]*switchState
	of        *config.Config // between and hosts are links of this configuration
	between   []watched      // links between switches
	hosts     []watched      // links to hosts
	news      bool           // a switch reported its ports since the last evaluation
	events    []*pb.Event    // events of the running evaluation
	rerouted  bool           // the running evaluation changes routes without an event
	evaluated time.Time      // time of the last full evaluation
	awake     time.Time      // since when the state has been evaluated without a break
}

// linkState is the state of a link.
type linkState struct {
	state    pb.PortStatus_State // from port states and probes, at the last evaluation
	why      string              // state is PortDown
	disabled bool                // the operator took the link out of service; kept over configurations
	suspect  bool                // routes avoid the link, because of its ports or probes
	cut      bool                // the port to its host is down
	nodeA    string              // the node at end A in the configuration that is watched
	probes   [2]time.Time        // the last ones to the switches at ends A and B, on the monotonic clock
	flap     flap
}

// watched is a link of the configuration with its state and the states of the switches at its ends. The state of a
// host is nil.
type watched struct {
	*config.Link
	*linkState
	a, b *switchState
}

// switchState is the state of a switch.
type switchState struct {
	ports       map[uint32]pb.PortStatus_State // port states that the switch reports; nil without a report
	attached    time.Time                      // device.Health.Attached at the last evaluation
	lost        time.Time                      // since when the switch is out of reach
	unreachable bool                           // out of reach for unreachable_after, or its process has ended
}

// OutOfService is the reason shown for a link that an operator took out of service.
const OutOfService = "an operator took it out of service"

// LinkKeeper makes durable which links an operator took out of service.
type LinkKeeper interface {
	// DownLinks returns the links that are out of service, by name.
	DownLinks() []string
	// SaveLinks stores whether links are out of service, by name, with the outcome of the request (nil for none).
	SaveLinks(down map[string]bool, done *outcome.Done) error
}

func newLinkMonitor(event func(*pb.Event), keeper LinkKeeper) *linkMonitor {
	m := &linkMonitor{
		event: event, keeper: keeper, reported: make(chan struct{}, 1),
		links: map[string]*linkState{}, switches: map[string]*switchState{},
	}
	if keeper != nil {
		for _, name := range keeper.DownLinks() {
			m.link(name).disabled = true
		}
	}
	return m
}

// link returns the state of a link. The caller holds mu.
func (m *linkMonitor) link(name string) *linkState {
	if m.links[name] == nil {
		m.links[name] = &linkState{}
	}
	return m.links[name]
}

// node returns the state of a switch. The caller holds mu.
func (m *linkMonitor) node(name string) *switchState {
	if m.switches[name] == nil {
		m.switches[name] = &switchState{}
	}
	return m.switches[name]
}

// seen notes a probe.
func (m *linkMonitor) seen(link, at string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, end := m.link(link), 0
	if at != l.nodeA {
		end = 1
	}
	l.probes[end] = now
}

// report notes the states of all ports that a switch reports, nil when it reports none.
func (m *linkMonitor) report(sw string, ports map[uint32]pb.PortStatus_State) {
	m.mu.Lock()
	m.node(sw).ports = ports
	m.news = true
	m.mu.Unlock()
	select {
	case m.reported <- struct{}{}:
	default:
	}
}

// set takes links out of service or puts them back. On an error it changes none of them. It returns the links that
// it changed. Calls of set and forget take turns. mu is not held while the keeper works, so that probes are noted
// meanwhile.
func (m *linkMonitor) set(links []string, up bool, done *outcome.Done) (changed []string, err error) {
	down := map[string]bool{}
	m.mu.Lock()
	for _, name := range links {
		if m.link(name).disabled == up {
			changed = append(changed, name)
			down[name] = !up
		}
	}
	m.mu.Unlock()
	if m.keeper != nil && len(changed) > 0 {
		if err := m.keeper.SaveLinks(down, done); err != nil {
			return nil, outcome.FromStore(err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range changed {
		m.link(name).disabled = !up
	}
	return changed, nil
}

// disabled returns the links that an operator took out of service.
func (m *linkMonitor) disabled() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := map[string]string{}
	for name, l := range m.links {
		if l.disabled {
			list[name] = "out of service"
		}
	}
	return list
}

// forget drops the state of links and switches that a new configuration lacks, and watches the configuration's links.
func (m *linkMonitor) forget(c *config.Config) error {
	known := make(map[string]bool, len(c.Links))
	for _, k := range c.Links {
		known[k.Name] = true
	}
	gone := map[string]bool{}
	m.mu.Lock()
	for name, l := range m.links {
		if known[name] {
			continue
		}
		delete(m.links, name)
		if l.disabled {
			gone[name] = false
		}
	}
	for name := range m.switches {
		if c.Switch(name) == nil {
			delete(m.switches, name)
		}
	}
	m.watch(c)
	m.mu.Unlock()
	if m.keeper == nil || len(gone) == 0 {
		return nil
	}
	return m.keeper.SaveLinks(gone, nil)
}

// state returns the input of the route computation.
func (m *linkMonitor) state() topology.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := topology.State{DownLinks: map[string]bool{}, SuspectLinks: map[string]bool{}, HeldLinks: map[string]bool{}, SuspectSwitches: map[string]bool{}}
	for name, l := range m.links {
		if l.disabled {
			s.DownLinks[name] = true
		}
		switch {
		case l.cut:
			s.SuspectLinks[name] = true
		case l.suspect && l.flap.back.IsZero():
			s.SuspectLinks[name] = true
		case l.suspect:
			s.HeldLinks[name] = true
		}
	}
	for name, sw := range m.switches {
		if sw.unreachable {
			s.SuspectSwitches[name] = true
		}
	}
	return s
}

// portState returns the state of the ports at the ends of a link, why they are down, and whether an operator took the
// link out of service.
func (m *linkMonitor) portState(link string) (state pb.PortStatus_State, why string, outOfService bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch l := m.links[link]; {
	case l == nil:
		return pb.PortStatus_STATE_UNKNOWN, "", false
	case l.disabled:
		return pb.PortStatus_STATE_DOWN, OutOfService, true
	default:
		return l.state, l.why, false
	}
}

// standstill is the shortest gap between two evaluations that means that the controller itself stalled, frozen or
// short of processor time. Messages missing in such a gap prove nothing.
const standstill = 4 * healthInterval

// watch finds the links of a configuration and their states. The caller holds mu.
func (m *linkMonitor) watch(c *config.Config) {
	m.of, m.news, m.between, m.hosts = c, true, nil, nil
	for i := range c.Links {
		k := &c.Links[i]
		w := watched{Link: k, linkState: m.link(k.Name)}
		w.nodeA = k.A.Node
		if k.A.Port != 0 {
			w.a = m.node(k.A.Node)
		}
		if k.B.Port != 0 {
			w.b = m.node(k.B.Node)
		}
		if w.a == nil || w.b == nil {
			m.hosts = append(m.hosts, w)
		} else {
			m.between = append(m.between, w)
		}
	}
}

// evaluate evaluates all switches and links once and reports whether routes change. After a standstill all timeouts
// restart. Links to hosts depend only on ports, so they are evaluated only after a switch has reported its ports.
func (m *linkMonitor) evaluate(c *config.Config, switches iter.Seq2[string, device.Health], now time.Time) (changed bool) {
	m.mu.Lock()
	if now.Sub(m.evaluated) > standstill {
		m.awake = now
	}
	m.evaluated = now
	for name, h := range switches {
		m.evaluateSwitch(name, h, c.Controller.UnreachableAfter, now)
	}
	if m.of != c {
		m.watch(c)
	}
	for _, w := range m.between {
		w.state, w.why = pb.PortStatus_STATE_UNKNOWN, ""
		m.evaluateLink(w, &c.Controller, now)
	}
	for i := 0; m.news && i < len(m.hosts); i++ {
		m.hosts[i].state, m.hosts[i].why = pb.PortStatus_STATE_UNKNOWN, ""
		m.evaluateHost(c, m.hosts[i])
	}
	m.news = false
	events, rerouted := m.events, m.rerouted
	m.events, m.rerouted = nil, false
	m.mu.Unlock()
	for _, e := range events {
		m.event(e)
	}
	return len(events) > 0 || rerouted
}

// tell adds an event to the evaluation.
func (m *linkMonitor) tell(severity pb.Event_Severity, subject, kind, text string) {
	m.events = append(m.events, &pb.Event{Severity: severity, Subject: subject, Kind: kind, Message: text})
}

func (m *linkMonitor) evaluateSwitch(name string, h device.Health, after time.Duration, now time.Time) {
	s := m.node(name)
	s.attached = h.Attached
	switch {
	case !h.Known: // the last known state stays
		return
	case h.Forwards:
		s.lost = time.Time{}
		if s.unreachable {
			s.unreachable = false
			m.tell(pb.Event_SEVERITY_INFO, name, "switch.reachable", "the switch holds what it should; routes use it again")
		}
		return
	case s.lost.Before(m.awake):
		s.lost = now
	}
	if after <= 0 || s.unreachable || now.Sub(s.lost) < after && !h.Gone {
		return
	}
	s.unreachable = true
	text := fmt.Sprintf("out of reach, or without its program and entries, for %v; routes avoid the switch where they can", after)
	switch {
	case h.Gone && !h.Reached:
		text = "never reached: nothing listens at its address; start the switch, or correct its address; routes avoid it where they can"
	case h.Gone:
		text = "nothing listens at its address: its process has ended and no longer forwards; routes avoid the switch where they can"
	}
	m.tell(pb.Event_SEVERITY_ERROR, name, "switch.unreachable", text)
}

// ports returns the end of a link whose switch reports that its port is down, "" for none. up is set if no port is
// down and at least one is reported up.
func (w watched) ports() (down string, up bool) {
	for i, sw := range []*switchState{w.a, w.b} {
		e := [...]config.Endpoint{w.A, w.B}[i]
		switch {
		case sw == nil:
		case sw.ports[e.Port] == pb.PortStatus_STATE_DOWN:
			return e.String(), false
		case sw.ports[e.Port] == pb.PortStatus_STATE_UP:
			up = true
		}
	}
	return "", up
}

// evaluateHost evaluates the port of a host's link. Routes do not change if the host has no other link.
func (m *linkMonitor) evaluateHost(c *config.Config, w watched) {
	host := w.A.Node
	if w.a != nil {
		host = w.B.Node
	}
	switch down, up := w.ports(); {
	case down != "":
		w.state, w.why = pb.PortStatus_STATE_DOWN, "the port "+down+" is down, says its switch"
		if !w.cut {
			w.cut = true
			text := ": " + host + " is cut off"
			if slices.ContainsFunc(c.Links, func(o config.Link) bool { return o.Name != w.Name && (o.A.Node == host || o.B.Node == host) }) {
				text = "; routes avoid the link where they can"
			}
			m.tell(pb.Event_SEVERITY_ERROR, w.Name, "link.down", w.why+text)
		}
	case up:
		w.state = pb.PortStatus_STATE_UP
		if w.cut {
			w.cut = false
			m.tell(pb.Event_SEVERITY_INFO, w.Name, "link.up", "the port is up, says its switch")
		}
	}
}

// silent returns the switch to which no probe of a link came for the timeout, "" for none. heard is set if both
// switches got a probe within the timeout.
func (m *linkMonitor) silent(w watched, since time.Time, timeout time.Duration, now time.Time) (silent string, heard bool) {
	if m.awake.After(since) {
		since = m.awake
	}
	heard = true
	for end, at := range [...]string{w.A.Node, w.B.Node} {
		last := w.probes[end]
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

// evaluateLink evaluates a link between switches: by their ports, and by probes while both switches can send and
// receive them. Without information from either it changes nothing.
func (m *linkMonitor) evaluateLink(w watched, c *config.Controller, now time.Time) {
	down, heard := w.ports()
	why, back := "", "its ports are up, say its switches"
	switch a, b := w.a.attached, w.b.attached; {
	case down != "":
		why = "the port " + down + " is down, says its switch"
		w.probes = [2]time.Time{} // earlier probes say nothing about the cable that comes
	case c.ProbeInterval <= 0 && heard:
	case c.ProbeInterval <= 0 || a.IsZero() || b.IsZero():
		return
	default:
		if b.After(a) {
			a = b
		}
		var silent string
		if silent, heard = m.silent(w, a, c.ProbeTimeout, now); silent != "" {
			why = fmt.Sprintf("no probe came to %s for %v", silent, c.ProbeTimeout)
		}
		back = "probes come again"
	}
	f := &w.flap
	switch {
	case why != "":
		w.state, w.why = pb.PortStatus_STATE_DOWN, why
		switch {
		case !w.suspect:
			m.tell(pb.Event_SEVERITY_ERROR, w.Name, "link.down", why+"; routes avoid the link where they can")
		case f.back.IsZero():
			return
		default: // came back while it was held: better than other suspect links
			m.rerouted = true
		}
		w.suspect, *f = true, flap{downs: f.downs + 1}
		return
	case heard:
		w.state = pb.PortStatus_STATE_UP
	}
	switch {
	case w.suspect && !heard: // the grace period after an attachment proves nothing
	case w.suspect:
		hold, first := f.hold(c), f.back.IsZero()
		if first {
			f.back = now
		}
		if now.Sub(f.back) >= hold {
			w.suspect, f.back = false, now
			m.tell(pb.Event_SEVERITY_INFO, w.Name, "link.up", back)
			return
		}
		times := units.Count(f.downs, "time")
		w.state, w.why = pb.PortStatus_STATE_DOWN, "it is held, as it went down "+times
		if first {
			m.tell(pb.Event_SEVERITY_WARNING, w.Name, "link.held",
				fmt.Sprintf("%s after %s down; routes avoid the link for another %v, and longer with each time", back, times, hold))
		}
	case now.Sub(f.back) >= c.FlapHoldMax:
		*f = flap{}
	}
}

// flap counts how often a link goes down and comes back.
type flap struct {
	downs int       // times that the link went down since it was last up for flap_hold_max
	back  time.Time // since when probes come again; zero while none come
}

// hold returns how long a link that comes back is not used: 0 after the first failure, flap_hold after the second,
// and twice as long after each further one.
func (f flap) hold(c *config.Controller) time.Duration {
	if f.downs < 2 || c.FlapHold <= 0 {
		return 0
	}
	return min(c.FlapHold<<min(f.downs-2, 30), c.FlapHoldMax)
}
