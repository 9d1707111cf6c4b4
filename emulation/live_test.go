package emulation

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// TestLive runs the view through a scenario without a terminal.
func TestLive(t *testing.T) {
	s, _ := Find("dsh")
	v, now, width := &Live{}, Snapshot{}, 0
	shows := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := v.draw(now, width); !strings.Contains(got, w) {
				t.Errorf("the view lacks %q:\n%s", w, got)
			}
		}
	}
	shows("…")
	conf := &config.Config{Controller: config.Controller{Listen: "127.0.0.1:9600", Metrics: "127.0.0.1:9601"}}
	run := &Run{Scenario: &s, Config: conf}
	v.Show(Event{Run: run, Kind: Started})
	shows(s.Title, "variant 1 of 6", "sih", "come up", "127.0.0.1:9600", "page http://127.0.0.1:9601/")
	v.Show(Event{Run: run, Kind: Ready})
	v.Show(Event{Run: run, Kind: PhaseBegun, Phase: 1})
	now = Snapshot{
		At: 450 * units.Microsecond, End: 900 * units.Microsecond, Recorded: true, Queue: 5000, Pauses: 7,
		Flows:    []FlowNow{{Name: "F0", History: []float64{1e9, 46.8e9}, RTT: 12 * units.Microsecond}, {Name: "A", Weight: 2.5}},
		Switches: []SwitchNow{{Name: "left", State: "ready", Entries: 42, Port: 3, Queued: 1500}},
	}
	shows("450µs of 900µs", "phase 2 of 3", "24 hosts send", "F0", "46.80 Gb/s", "▁█", "0.012", "2.5",
		"queue 5 KB   7 PAUSE frames", "left", "ready", "42", "1.5 KB", strings.Repeat("█", 15)+"░")
	for _, width = range []int{140, 60} { // the bar has the parts that fit the terminal
		shows(strings.Repeat("█", max(width-70, 30)/2) + "░")
	}
	v.Show(Event{Run: run, Kind: Faulted, Fault: "left restarted"})
	shows("FAULT: left restarted")
	v.Show(Event{Run: run, Kind: Ended, Result: dshPlay("sih", 30, 30e9)})
	v.Show(Event{Run: &Run{Scenario: &s, Config: conf, Index: 1}, Kind: Started})
	shows("30 PAUSE frames", "F0 47.00 Gb/s → 30.00 Gb/s", "variant 2 of 6", "static")
}

func TestLines(t *testing.T) {
	s := Snapshot{
		At: 450 * units.Microsecond, End: 900 * units.Microsecond, Recorded: true, Queue: 5000, Pauses: 7,
		Flows: []FlowNow{{Name: "F0", History: []float64{46.8e9}}, {Name: "A", Weight: 2, History: []float64{15.7e6}, MaxQD: 18 * units.Millisecond}},
	}
	if got, want := s.line(), "450µs of 900µs   F0 46.80 Gb/s   A(w 2) 15.70 Mb/s qd 18.0 ms   queue 5 KB   7 PAUSE frames"; got != want {
		t.Errorf("a snapshot reads\n%q, want\n%q", got, want)
	}
	for want, v := range map[string]*Result{
		"queue peak 614 KB, settled at 135 KB, 140 CNPs": {Queue: &Queue{PeakKB: 614, SettledKB: 135}, CNPs: 140},
		"INVALID: flow A never ran":                      {Queue: &Queue{}, Invalid: []string{"flow A never ran", "more"}},
		"2 phases, 0 packets dropped":                    {Phases: make([]PhaseResult, 2)},
	} {
		if got := v.summary(); got != want {
			t.Errorf("a result reads %q, want %q", got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	s, _ := Find("dsh")
	var out bytes.Buffer
	p := NewPlain(&out)
	run := &Run{Scenario: &s, Config: &config.Config{}}
	for _, e := range []Event{{Kind: Started}, {Kind: PhaseBegun, Phase: 1}, {Kind: Faulted, Fault: "left restarted"}, {Kind: Ended, Result: dshPlay("sih", 30, 30e9)}} {
		e.Run = run
		p.Show(e)
	}
	for _, want := range []string{s.Title + "\n", "\nvariant 1 of 6: sih\n", "\nphase 2 of 3: fan-in\n  fan-in: 24 hosts", "FAULT: left restarted", "30 PAUSE frames"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the lines lack %q:\n%s", want, out.String())
		}
	}
}
