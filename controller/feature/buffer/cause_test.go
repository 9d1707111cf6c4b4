package buffer

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/units"
)

// TestCause: a pause is traced through the fabric to the host that sends it, or to the overloaded link. Port 4 of
// leaf1 and leaf2 are connected; h4 is at leaf2:1.
func TestCause(t *testing.T) {
	const class = 3
	at := func(number uint32, queued uint32, mbps units.Rate, paused bool) PortState {
		p := PortState{Number: number, Lossless: 1 << class, out: egress{queues: [8]uint32{class: queued}, rate: mbps * units.Mbps}}
		if paused {
			p.Paused = 1 << class
		}
		return p
	}
	for _, c := range []struct {
		name         string
		leaf1, leaf2 []PortState
		text, host   string
	}{
		{"a host of another switch", []PortState{at(1, 0, 0, true), at(4, 9000, 0, false)}, []PortState{at(1, 50_000, 1, false), at(2, 100, 90, false), at(4, 0, 0, true)},
			"it began at host h4, which pauses its port: leaf2:1 sends 1Mbps of 100Mbps to h4 with 50KB queued", "h4"},
		{"a host of the same switch", []PortState{at(1, 0, 0, true), at(2, 9000, 0, false), at(4, 0, 90, false)}, nil,
			"it began at host h2, which pauses its port: leaf1:2 sends 0", "h2"},
		{"fan-in", []PortState{at(1, 0, 0, true), at(4, 9000, 40, false)}, []PortState{at(1, 50_000, 99, false), at(4, 0, 0, true)},
			"more for one host than its link carries: leaf2:1 sends 99Mbps", ""},
		{"a link between switches", []PortState{at(1, 0, 0, true), at(4, 9000, 99, false)}, []PortState{at(4, 0, 0, false)},
			"more for one link than it carries: leaf1:4 sends 99Mbps", ""},
		{"a switch that pauses for nothing", []PortState{at(1, 0, 0, true), at(4, 9000, 0, false)}, []PortState{at(4, 0, 0, false)},
			"a switch that pauses without being paused: leaf1:4", ""},
		{"nothing queued", []PortState{at(1, 0, 0, true), at(4, 0, 0, false)}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			callbacks := &testenv.Callbacks{}
			f := newFeat(callbacks)
			l := f.attach(environment(t), &testenv.Switch{Switch: "leaf1"}).(*loop)
			f.latest.Set("leaf1", &State{Ports: c.leaf1})
			f.latest.Set("leaf2", &State{Ports: c.leaf2})
			p := l.ports[0]
			text, host := l.cause(p, class)
			if host != c.host || c.text == "" && text != "" || !strings.Contains(text, c.text) {
				t.Errorf("%q, %q, want %q, %q", text, host, c.text, c.host)
			}
			if all, same := l.cause(p, everyClass); all != text || same != host {
				t.Errorf("of all classes %q, %q", all, same)
			}
			now, quiet := time.Now(), func() string { return "paused" }
			callbacks.Events = nil
			l.alarm(now, StuckAlarm, p, class, true, quiet)
			l.alarm(now, StormAlarm, p, everyClass, true, quiet)
			var kinds []string
			for _, e := range callbacks.Events {
				if e.Kind == StuckAlarm && !strings.Contains(e.Message, c.text) {
					t.Errorf("event %+v", e)
				}
				if e.Kind == PauserAlarm && e.Subject != c.host {
					t.Errorf("event %+v", e)
				}
				kinds = append(kinds, e.Kind)
			}
			l.alarm(now, StuckAlarm, p, class, false, quiet)
			l.alarm(now, StormAlarm, p, everyClass, false, quiet)
			for _, e := range callbacks.Events[len(kinds):] {
				kinds = append(kinds, e.Kind)
			}
			want := "pfc.stuck pfc.storm pfc.stuck_over pfc.storm_over"
			if host != "" { // reported once, and ended with the last alarm that it caused
				want = "pfc.stuck host.pauses pfc.storm pfc.stuck_over host.pauses_over pfc.storm_over"
			}
			if got := strings.Join(kinds, " "); got != want {
				t.Errorf("events %s, want %s", got, want)
			}
		})
	}
}
