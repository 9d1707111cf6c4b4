package pfcwatchdog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/yamlnode"
)

const watched = "pfc_watchdog: {detection_time: 200ms, restoration_time: 400ms, action: drop}\n"

func newEnv(t *testing.T, f *feature.Feature, section string, edit func(string) string) *feature.Env {
	return testenv.New(t, "../../..", func(text string) string {
		if edit != nil {
			text = edit(text)
		}
		return text + section
	}, f)
}

func TestDesired(t *testing.T) {
	for _, tt := range []struct{ section, want string }{
		{"", "extern 0x81000001 → action=alert, default=true, detection_time=1.3421568s, restoration_time=1.3421568s, share=0.98"},
		{"pfc_watchdog: {detection_time: \"off\"}\n", ""},
		{"pfc_watchdog: {detection_time: 300ms}\n", "extern 0x81000001 → action=drop, detection_time=300ms, restoration_time=300ms, share=0.98"},
		{"pfc_watchdog: {detection_time: 200ms, restoration_time: 400ms, share: 1, action: alert}\n", "extern 0x81000001 → action=alert, detection_time=200ms, restoration_time=400ms, share=1"},
	} {
		f := New(nil)
		if got := strings.Join(testenv.Lines(t, f, newEnv(t, f, tt.section, nil), "leaf1"), "; "); got != tt.want {
			t.Errorf("%q wants %q, want %q", tt.section, got, tt.want)
		}
	}
}

// TestShortTimes: a plan warns of a time that is shorter than one PAUSE of 65535 quanta, 671 ms at the example's
// 50 Mb/s.
func TestShortTimes(t *testing.T) {
	for section, want := range map[string]int{
		"": 0, "pfc_watchdog: {detection_time: 700ms}\n": 0, "pfc_watchdog: {detection_time: 1ms}\n": 2, "pfc_watchdog: {detection_time: 1s, restoration_time: 1ms}\n": 1,
	} {
		f := New(nil)
		got := f.Advise(newEnv(t, f, section, nil), nil)
		if len(got) != want || want == 2 && !strings.HasPrefix(got[0], "pfc_watchdog.detection_time is 1ms, and one PAUSE of 65535 quanta lasts 671.0784ms on leaf1:1-h1 (50Mbps): one ordinary PAUSE is a storm") {
			t.Errorf("%q: %q, want %d notes", section, got, want)
		}
	}
}

// A target that cannot run the watchdog is refused if the file asks for it. A switch's own section
// can switch it off.
func TestRefused(t *testing.T) {
	bmv2 := func(own string) func(string) string {
		return func(text string) string {
			return strings.Replace(text, `address: "127.0.0.1:9551", target: embedded`, `address: "127.0.0.1:9551", target: bmv2`+own, 1)
		}
	}
	f := New(nil)
	_, err := f.Desired(newEnv(t, f, watched, bmv2("")))
	var fault yamlnode.Fault
	if want := `is 200ms, which the switch "leaf1" cannot do: simple_switch ignores the PAUSE frames that it receives`; !errors.As(err, &fault) ||
		fault.Field != "pfc_watchdog.detection_time" || fault.Text != want {
		t.Errorf("error %v, want %s", err, want)
	}
	env := newEnv(t, f, watched, bmv2(", pfc_watchdog: {detection_time: 1s}"))
	if _, err := f.Desired(env); !errors.As(err, &fault) || fault.Field != "switches[0].pfc_watchdog.detection_time" {
		t.Errorf("error %v, want one of the switch's own section", err)
	}
	env = newEnv(t, f, watched, bmv2(`, pfc_watchdog: {detection_time: "off"}`))
	for sw, n := range map[string]int{"leaf1": 0, "leaf2": 1} {
		if list, err := f.Desired(testenv.AtSwitch(env, sw)); err != nil || len(list) != n {
			t.Errorf("%s wants %v, %v", sw, list, err)
		}
	}
	s := &config.Switch{Name: "t", Target: config.Tofino2}
	if on := watchCapability.Status(testenv.Tofino(t, "tofino2"), s); on.Supported || !strings.Contains(on.Detail, "BF Runtime") {
		t.Errorf("tofino2: %+v", on)
	}
}

// TestNoWatchdog: a switch that does not obey PFC is not mentioned if the file does not ask for the
// watchdog.
func TestNoWatchdog(t *testing.T) {
	for section, quiet := range map[string]bool{"": true, watched: false} {
		f := New(nil)
		sw := &testenv.Switch{Switch: "leaf1", Err: status.Error(codes.Unimplemented, "no externs")}
		l := f.Attach(newEnv(t, f, section, nil), sw)
		if err := l.Tick(context.Background(), time.Now()); err == nil || quiet != errors.Is(err, feature.ErrDone) {
			t.Errorf("%q: %v", section, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for section, want := range map[string]string{
		"pfc_watchdog: {action: drop}\n":                           "want detection_time with them",
		"pfc_watchdog: {detection_time: 1s, action: stop}\n":       "want one of",
		"pfc_watchdog: {share: 0.9}\n":                             "want detection_time with them",
		"pfc_watchdog: {detection_time: 1s, share: 0}\n":           "want a number above 0 and at most 1",
		"pfc_watchdog: {detection_time: 1us}\n":                    "want off, or 1ms to 3600s",
		"pfc_watchdog: {detection_time: 1s, restoration: 400ms}\n": "restoration",
	} {
		_, err := config.Parse("f.yaml", []byte("name: f\n"+section), nil, own(t))
		if err == nil || !strings.Contains(err.Error(), "pfc_watchdog") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", section, err, want)
		}
	}
}

func own(t *testing.T) config.Section {
	t.Helper()
	return New(nil).Section
}

func TestStorms(t *testing.T) {
	callbacks := &testenv.Callbacks{}
	f := New(callbacks)
	env := newEnv(t, f, watched, nil)
	var storms []externs.Storm
	sw := &testenv.Switch{Switch: "leaf1", Answer: func(r []*p4v1.Entity) []*p4v1.Entity {
		if len(r) != 1 || r[0].GetExternEntry().GetExternId() != externs.StormsID {
			t.Errorf("read %v", r)
		}
		return []*p4v1.Entity{externs.StormsEntity(storms)}
	}}
	l := f.Attach(testenv.AtSwitch(env, sw.Name()), sw)
	if l.Interval() != 100*time.Millisecond {
		t.Errorf("read every %v", l.Interval())
	}
	start := time.Now()
	tick := func(at time.Duration, want []string, now ...externs.Storm) {
		t.Helper()
		storms, callbacks.Events = now, nil
		if err := l.Tick(context.Background(), start.Add(at*time.Second)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range callbacks.Events {
			got = append(got, e.Kind+" "+e.Message)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %d s: events %q, want %q", at, got, want)
		}
	}
	const (
		begins = "pfc.received_storm port 1 (h1) class 3: paused by its peer for 98 % of 200ms; what leaves for it is dropped until no PAUSE has come for 400ms; it began at h1"
		old    = "pfc.received_storm_over port 1 (h1) class 3: over; 3 storms so far, which dropped 7 frames"
	)
	other := externs.Storm{Port: 2, Class: 0, Count: 9}
	// A storm that ended before the controller started is not reported.
	tick(0, nil, other)
	tick(1, []string{begins}, other, externs.Storm{Port: 1, Class: 3, On: true, Count: 1})
	if e := callbacks.Events[0]; e.Severity != pb.Event_SEVERITY_ERROR || e.Port != 1 || e.Class == nil || *e.Class != 3 || e.Since == nil {
		t.Errorf("event %+v", e)
	}
	tick(2, nil, other, externs.Storm{Port: 1, Class: 3, On: true, Count: 1, Dropped: 5})
	status := testenv.Shown(f, "leaf1")
	for metric, want := range map[string]float64{"pfc_storm": 1, "pfc_storms": 1, "pfc_storm_dropped_packets": 5} {
		if got, ok := testenv.Number(status, metric, "1", "h1", "3"); !ok || got != want {
			t.Errorf("%s = %v, %v, want %v", metric, got, ok, want)
		}
	}
	// A new loop continues where the last one ended. The count shows a storm between two readings.
	l = f.Attach(testenv.AtSwitch(env, sw.Name()), sw)
	tick(3, []string{"pfc.received_storm_over port 1 (h1) class 3: over; 1 storm so far, which dropped 7 frames"}, other, externs.Storm{Port: 1, Class: 3, Count: 1, Dropped: 7})
	tick(4, []string{begins, old}, other, externs.Storm{Port: 1, Class: 3, Count: 3, Dropped: 7})
	// Another storm replaces the last one, then the switch restarts.
	tick(5, []string{begins}, externs.Storm{Port: 1, Class: 3, On: true, Count: 4})
	tick(6, []string{"pfc.received_storm_over port 1 (h1) class 3: over; 4 storms so far, which dropped 0 frames"})
	tick(7, []string{begins}, externs.Storm{Port: 1, Class: 3, On: true, Count: 1})
	callbacks.Events = nil
	// Without a watchdog all storms end.
	if l := f.Attach(newEnv(t, f, "pfc_watchdog: {detection_time: \"off\"}\n", nil), sw); l != nil || len(callbacks.Events) != 1 || callbacks.Events[0].Kind != "pfc.received_storm_over" {
		t.Errorf("loop %v, events %v", l, callbacks.Events)
	}
	if got := testenv.Shown(f, "leaf1").Features.GetPfcwatchdog(); got != nil {
		t.Errorf("status %v", got)
	}
}
