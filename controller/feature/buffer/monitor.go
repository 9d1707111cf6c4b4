package buffer

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

const (
	everyClass  = -1
	overSuffix  = "_over" // ends the kind of the event that ends an alarm
	stormCalm   = 2       // a storm is over below this fraction (1/stormCalm) of the bound
	stalePolls  = 4       // after this many polls without a report, a port's pauses are unknown
	roundedTime = time.Millisecond
)

type alarmKey struct {
	kind  string
	port  uint32
	class int
}

var severities = map[string]pb.Event_Severity{
	StormAlarm: pb.Event_SEVERITY_WARNING, StuckAlarm: pb.Event_SEVERITY_WARNING, LateAlarm: pb.Event_SEVERITY_ERROR, DropAlarm: pb.Event_SEVERITY_ERROR,
}

func (l *loop) monitor(now time.Time) {
	l.memory.Lock()
	defer l.memory.Unlock()
	for _, p := range l.ports {
		l.monitorStorm(now, p)
		for c, at := range p.drop { // a drop within the storm window raises the alarm
			l.alarm(now, DropAlarm, p, c, !at.IsZero() && now.Sub(at) <= l.buffer.StormWindow, func() string {
				return fmt.Sprintf("packets of a lossless class were dropped, %d so far", p.LosslessDrops[c])
			})
		}
		if p.polled.IsZero() || now.Sub(p.polled) > stalePolls*l.every {
			continue // its old state says nothing about its new one
		}
		for c, since := range p.since {
			l.alarm(now, StuckAlarm, p, c, !since.IsZero() && now.Sub(since) > l.buffer.Stuck, func() string {
				return fmt.Sprintf("paused for %v without a break, longer than %v; it holds %d B", now.Sub(since).Round(roundedTime), l.buffer.Stuck, p.Private[c]+p.Shared[c]+p.Headroom[c])
			})
		}
		// A PAUSE has expired that should still hold.
		l.alarm(now, LateAlarm, p, everyClass, p.Paused != 0 && p.age >= 2*p.half, func() string {
			return fmt.Sprintf("its PAUSE was sent %v ago and lasts %v, so its peer may send again; %s had no effect",
				p.age.Round(roundedTime), (2 * p.half).Round(roundedTime), units.Count(p.lost, "refresh"))
		})
	}
}

// monitorStorm compares the PAUSE frames of a window with the bound.
func (l *loop) monitorStorm(now time.Time, p *port) {
	window := l.buffer.StormWindow
	for len(p.storm) > 2 && now.Sub(p.storm[1].at) >= window {
		p.storm = p.storm[1:]
	}
	if len(p.storm) < 2 {
		return
	}
	first, last := p.storm[0], p.storm[len(p.storm)-1]
	span := last.at.Sub(first.at)
	if span+l.count < window {
		return // the readings do not cover a window yet
	}
	rate := float64(last.n-first.n) / span.Seconds()
	bound := float64(l.buffer.Storm)
	if _, on := l.memory.alarms[alarmKey{StormAlarm, p.Number, everyClass}]; on {
		bound /= stormCalm
	}
	l.alarm(now, StormAlarm, p, everyClass, rate > bound, func() string {
		return fmt.Sprintf("%d PAUSE frames in %v, more than %d a second", last.n-first.n, span.Round(roundedTime), l.buffer.Storm)
	})
}

// alarm begins or ends an alarm and publishes the event. The memory is locked.
func (l *loop) alarm(now time.Time, kind string, p *port, class int, on bool, text func() string) {
	key := alarmKey{kind, p.Number, class}
	a, was := l.memory.alarms[key]
	if on == was {
		return
	}
	if !on {
		l.over(now, key, a)
		return
	}
	a = Alarm{Kind: kind, Port: p.Number, Class: class, Since: now, Text: p.name() + where(class) + ": " + text()}
	if kind == StuckAlarm || kind == StormAlarm {
		why, host := l.cause(p, class)
		a.Text, a.pauser = a.Text+why, host
	}
	l.memory.alarms[key] = a
	l.callbacks.Event(event(now, l.sw.Name(), severities[kind], kind, a))
	l.blame(now, a, true)
}

func (l *loop) over(now time.Time, key alarmKey, a Alarm) {
	delete(l.memory.alarms, key)
	l.blame(now, a, false)
	a.Text = fmt.Sprintf("port %d%s: over after %v", a.Port, where(a.Class), now.Sub(a.Since).Round(roundedTime))
	l.callbacks.Event(event(now, l.sw.Name(), pb.Event_SEVERITY_INFO, key.kind+overSuffix, a))
}

func where(class int) string {
	if class == everyClass {
		return ""
	}
	return fmt.Sprintf(" class %d", class)
}

func event(now time.Time, sw string, severity pb.Event_Severity, kind string, a Alarm) *pb.Event {
	e := &pb.Event{Time: pb.Stamp(now), Severity: severity, Subject: sw, Kind: kind, Message: a.Text, Port: a.Port, Since: pb.Stamp(a.Since)}
	if a.Class >= 0 && a.Class < headroom.Classes {
		class := uint32(a.Class)
		e.Class = &class
	}
	return e
}

// adopt ends the alarms of ports that the switch does not have any more.
func (l *loop) adopt(now time.Time) {
	l.memory.Lock()
	defer l.memory.Unlock()
	for key, a := range l.memory.alarms {
		if !slices.ContainsFunc(l.ports, func(p *port) bool { return p.Number == key.port }) {
			l.over(now, key, a)
		}
	}
}

// clear ends all alarms of a switch, and forgets its counters.
func (l *loop) clear(now time.Time) {
	l.memory.Lock()
	defer l.memory.Unlock()
	for key, a := range l.memory.alarms {
		l.over(now, key, a)
	}
	clear(l.memory.totals)
}

// alarms returns the alarms that are on, by port.
func (l *loop) alarms() []Alarm {
	l.memory.Lock()
	defer l.memory.Unlock()
	list := make([]Alarm, 0, len(l.memory.alarms))
	for _, a := range l.memory.alarms {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Class, b.Class))
	})
	return list
}

// PauserAlarm is the kind of the event that names a host whose PAUSEs stop other ports of the fabric. With the suffix
// "_over" it is the kind of the event of its end.
const PauserAlarm = "host.pauses"

// heldShare is a fraction of the port's rate: a port that has data but sends less is held up by its peer.
const heldShare = 0.5

// cause traces a pause that a port of the loop's switch sends back to its origin: from the ingress port to the egress
// port with the longest queue of the class, then to that port's peer if the peer pauses the class too, and so on. It
// returns the trace as text and the host that sends the PAUSEs, both "" for none. For a pause of every class it
// follows the first class that leads anywhere.
func (l *loop) cause(p *port, class int) (text, host string) {
	if class == everyClass {
		for c := range headroom.Classes {
			if p.Lossless>>c&1 != 0 && text == "" {
				text, host = l.cause(p, c)
			}
		}
		return text, host
	}
	queues := qos.FromConfig(l.env.Config).QueuesOf(uint8(class))
	sw, in := l.sw.Name(), p.Number
	for seen := map[string]bool{}; ; {
		if seen[sw] {
			return fmt.Sprintf("; the pauses lead in a circle through %s", sw), ""
		}
		seen[sw] = true
		s, _ := l.latest.Get(sw)
		out := s.longest(in, queues)
		if out == nil {
			return "", ""
		}
		at := fmt.Sprintf("%s:%d", sw, out.Number)
		ports := l.env.Graph.Ports(sw)
		i := slices.IndexFunc(ports, func(p topology.Port) bool { return p.Number == out.Number })
		if i < 0 {
			return "", ""
		}
		to := ports[i]
		took := fmt.Sprintf("%s sends %v of %v to %s with %v queued", at, out.out.rate, to.Rate, to.Peer, out.held(queues))
		held := float64(out.out.rate) < heldShare*float64(to.Rate)
		if to.PeerPort == 0 {
			if held {
				return fmt.Sprintf("; it began at host %s, which pauses its port: %s", to.Peer, took), to.Peer
			}
			return "; it began with more for one host than its link carries: " + took, ""
		}
		next, _ := l.latest.Get(to.Peer)
		if p := next.port(to.PeerPort); p == nil || p.Paused>>class&1 == 0 {
			if held {
				return "; it began at a switch that pauses without being paused: " + took, ""
			}
			return "; it began with more for one link than it carries: " + took, ""
		}
		sw, in = to.Peer, to.PeerPort
	}
}

// port returns a port, nil when it is not known.
func (s *State) port(number uint32) *PortState {
	if s == nil {
		return nil
	}
	for i := range s.Ports {
		if s.Ports[i].Number == number {
			return &s.Ports[i]
		}
	}
	return nil
}

// longest returns the port whose queues hold most, except one port; nil if no queue holds anything.
func (s *State) longest(but uint32, queues []uint8) (most *PortState) {
	if s == nil {
		return nil
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Number != but && p.held(queues) > 0 && (most == nil || p.held(queues) > most.held(queues)) {
			most = p
		}
	}
	return most
}

// egress is a port's own queues at the last poll, and the rate that left it since the one before.
type egress struct {
	queues   [8]uint32
	rate     units.Rate
	departed uint64
	ticks    uint64 // µs
}

// observe takes a report; the first one tells no rate.
func (e *egress) observe(r *feature.Report) {
	if e.ticks > 0 && r.Time > e.ticks && r.DepartedBytes >= e.departed {
		e.rate = units.RateOf(units.Bytes(r.DepartedBytes-e.departed), units.Time(r.Time-e.ticks)*units.Microsecond)
	}
	e.queues, e.departed, e.ticks = r.QueueBytes, r.DepartedBytes, r.Time
}

// held returns the bytes in some of a port's queues.
func (p *PortState) held(queues []uint8) (sum units.Bytes) {
	for _, q := range queues {
		sum += units.Bytes(p.out.queues[q])
	}
	return sum
}

// pausers are the hosts whose PAUSEs stop other ports, each with the alarms that were traced to it.
type pausers struct {
	mu sync.Mutex
	of map[string]map[string]bool
}

// begin notes that an alarm, by its name, led to a host. It reports whether it is the first that does.
func (p *pausers) begin(host, alarm string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]map[string]bool{}
	}
	first := len(p.of[host]) == 0
	if first {
		p.of[host] = map[string]bool{}
	}
	p.of[host][alarm] = true
	return first
}

// end notes that an alarm is over. It reports whether it was the last that led to the host.
func (p *pausers) end(host, alarm string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.of[host][alarm] {
		return false
	}
	delete(p.of[host], alarm)
	if len(p.of[host]) > 0 {
		return false
	}
	delete(p.of, host)
	return true
}

// blame raises the alarm of a host that causes pauses, and ends it.
func (b *base) blame(now time.Time, a Alarm, on bool) {
	if a.pauser == "" {
		return
	}
	name := fmt.Sprintf("%s %s %d %d", b.sw.Name(), a.Kind, a.Port, a.Class)
	e := &pb.Event{Time: pb.Stamp(now), Severity: pb.Event_SEVERITY_WARNING, Subject: a.pauser, Kind: PauserAlarm, Since: pb.Stamp(a.Since)}
	switch {
	case on && b.pausers.begin(a.pauser, name):
		e.Message = fmt.Sprintf("its PAUSEs stop other ports of the fabric: %s %s", b.sw.Name(), a.Text)
	case !on && b.pausers.end(a.pauser, name):
		e.Severity, e.Kind, e.Message = pb.Event_SEVERITY_INFO, PauserAlarm+overSuffix, "its PAUSEs stop no other port any more"
	default:
		return
	}
	b.callbacks.Event(e)
}
