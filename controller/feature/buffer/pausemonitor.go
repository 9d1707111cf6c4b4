package buffer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

const (
	everyClass  = -1
	overSuffix  = "_over" // of the kind of the event that ends an alarm
	stormCalm   = 2       // a storm is over when there is less than one part in so many of the bound
	stalePolls  = 4       // so many polls without a report, and nothing is known of a port's pauses
	roundedTime = time.Millisecond
)

type alarmKey struct {
	kind  string
	port  uint32
	class int
}

var severities = map[string]view.Severity{
	StormAlarm: view.Warning, StuckAlarm: view.Warning, LateAlarm: view.Error, DropAlarm: view.Error,
}

// monitor begins and ends alarms.
func (l *loop) monitor(now time.Time) {
	l.memory.Lock()
	defer l.memory.Unlock()
	for _, p := range l.ports {
		l.monitorStorm(now, p)
		l.monitorDrops(now, p)
		if p.polled.IsZero() || now.Sub(p.polled) > stalePolls*l.every {
			continue // what it was is not what it is
		}
		l.monitorStuck(now, p)
		l.monitorRefresh(now, p)
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
		return // too early to say
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

// monitorDrops raises the alarm for lossless packets that were dropped in the last window.
func (l *loop) monitorDrops(now time.Time, p *port) {
	for c, at := range p.drop {
		on := !at.IsZero() && now.Sub(at) <= l.buffer.StormWindow
		l.alarm(now, DropAlarm, p, c, on, func() string {
			return fmt.Sprintf("packets of a lossless class were dropped, %d so far", p.LosslessDrops[c])
		})
	}
}

func (l *loop) monitorStuck(now time.Time, p *port) {
	for c, since := range p.since {
		on := !since.IsZero() && now.Sub(since) > l.buffer.Stuck
		l.alarm(now, StuckAlarm, p, c, on, func() string {
			return fmt.Sprintf("paused for %v without a break, longer than %v; it holds %d B", now.Sub(since).Round(roundedTime), l.buffer.Stuck, p.Private[c]+p.Shared[c]+p.Headroom[c])
		})
	}
}

// monitorRefresh raises the alarm when a PAUSE has expired that should still hold.
func (l *loop) monitorRefresh(now time.Time, p *port) {
	on := p.Paused != 0 && p.age >= 2*p.half
	l.alarm(now, LateAlarm, p, everyClass, on, func() string {
		return fmt.Sprintf("its PAUSE was sent %v ago and lasts %v, so its peer may send again; %s had no effect",
			p.age.Round(roundedTime), (2 * p.half).Round(roundedTime), units.Count(p.lost, "refresh"))
	})
}

// alarm begins or ends an alarm and tells so. The memory is locked.
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

// over ends an alarm.
func (l *loop) over(now time.Time, key alarmKey, a Alarm) {
	delete(l.memory.alarms, key)
	l.blame(now, a, false)
	a.Text = fmt.Sprintf("port %d%s: over after %v", a.Port, where(a.Class), now.Sub(a.Since).Round(roundedTime))
	l.callbacks.Event(event(now, l.sw.Name(), view.Info, key.kind+overSuffix, a))
}

func where(class int) string {
	if class == everyClass {
		return ""
	}
	return fmt.Sprintf(" class %d", class)
}

func event(now time.Time, sw string, severity view.Severity, kind string, a Alarm) view.Event {
	e := view.Event{Time: now, Severity: severity, Subject: sw, Kind: kind, Message: a.Text, Port: a.Port, Since: a.Since}
	if a.Class >= 0 && a.Class < headroom.Classes {
		class := uint8(a.Class)
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
