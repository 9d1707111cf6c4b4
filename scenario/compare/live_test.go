package compare

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// TestScreen takes the view through a comparison without a terminal.
func TestScreen(t *testing.T) {
	s, _ := Find("dsh")
	stopped := false
	v := &screen{cancel: func() { stopped = true }}
	shows := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := v.View().Content; !strings.Contains(got, w) {
				t.Errorf("the view lacks %q:\n%s", w, got)
			}
		}
	}
	shows("…")
	v.Update(variantMsg{&s, 0})
	shows(s.Title, "variant 1 of 6", "sih", "come up")
	run := &Run{Scenario: &s, Config: &config.Config{Controller: config.Controller{Listen: "127.0.0.1:9600"}}}
	if _, cmd := v.Update(readyMsg{run}); cmd == nil {
		t.Error("a variant that runs is not looked at")
	}
	now := Snapshot{At: 450 * units.Microsecond, End: 900 * units.Microsecond, Rates: []Rate{{"F0", 46.8}}, Queue: 5000, Pauses: 7}
	v.Update(frameMsg{run, now})
	shows("450 of 900 µs", "F0", "46.8", "queue 5 KB", "PAUSE frames 7", "127.0.0.1:9600", strings.Repeat("█", 20)+"░")
	v.Update(resultMsg{&Result{Variant: "sih", Victim: &Victim{Flow: "F0", Before: 47, During: 30}, Pause: Pause{Frames: 30}}})
	v.Update(variantMsg{&s, 1})
	shows("30 PAUSE frames", "F0 47.0 → 30.0 Gb/s", "variant 2 of 6", "static")
	if _, cmd := v.Update(frameMsg{run, now}); cmd != nil {
		t.Error("a variant that is over is looked at again")
	}
	v.Update(tea.KeyPressMsg{Code: 'q', Text: "q"})
	if !stopped {
		t.Error("q does not end the run")
	}
	shows("stopping")
}

func TestLines(t *testing.T) {
	s := Snapshot{At: 450 * units.Microsecond, End: 900 * units.Microsecond, Rates: []Rate{{"F0", 46.8}, {"F1", 30}}, Queue: 5000, Pauses: 7}
	if got, want := s.line(), "  450 of 900 µs  F0  46.8 Gb/s   F1  30.0 Gb/s   queue    5 KB   7 PAUSE"; got != want {
		t.Errorf("a snapshot reads\n%q, want\n%q", got, want)
	}
	r := &Result{Queue: Queue{PeakKB: 614, SettledKB: 135}, CNPs: CNPs{All: 140}}
	if got, want := r.summary(), "queue peak 614 KB, settled at 135 KB, 140 CNPs"; got != want {
		t.Errorf("a result reads %q, want %q", got, want)
	}
}
