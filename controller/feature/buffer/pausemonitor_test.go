package buffer

import (
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/p4src/ids"
)

// The example's bound is 100 PAUSE frames a second over one second.
func TestStorm(t *testing.T) {
	r := newRig(t)
	pauses, debt := int64(0), 0.0
	at := func(rate float64) func(time.Duration) {
		return func(step time.Duration) {
			debt += rate * step.Seconds()
			whole := int64(debt)
			debt -= float64(whole)
			pauses += whole
			r.add(ids.CounterPFCPauses, 1, whole)
		}
	}
	r.run(5*time.Second, at(90))
	if got := r.events(); got != "" {
		t.Fatalf("events = %q", got)
	}
	r.run(3*time.Second, at(150))
	if len(r.callbacks.Events) != 1 {
		t.Fatalf("events = %+v", r.callbacks.Events)
	}
	e := r.callbacks.Events[0]
	if e.Kind != StormAlarm || e.Subject != "leaf1" || e.Port != 1 || e.Class != nil || e.Since == nil || e.Severity != pb.Event_SEVERITY_WARNING || !strings.Contains(e.Message, "port 1 (h1): ") {
		t.Errorf("event = %+v", e)
	}
	if a := r.shown().Alarms; len(a) != 1 || !a[0].Since.Equal(e.Since.AsTime()) {
		t.Errorf("alarms = %+v", a)
	}
	r.run(3*time.Second, at(60)) // above half of the bound, so the alarm stays
	r.run(3*time.Second, at(40))
	if got := r.events(); got != "pfc.storm pfc.storm_over" {
		t.Errorf("events = %q", got)
	}
	// The last reading is several ticks old.
	if got := int64(r.state().Pauses); got > pauses || got < pauses-10 {
		t.Errorf("%d PAUSE frames, want about %d", got, pauses)
	}
}

// The example's bound is two seconds without a break.
func TestStuck(t *testing.T) {
	r := newRig(t)
	fresh := func(time.Duration) { r.report.Buffer.LastPause = r.ticks() }
	r.report.Buffer.PausedQueues, r.report.Buffer.Shared[3] = 1<<3, 4000
	r.run(1500*time.Millisecond, fresh)
	r.add(ids.CounterPFCResumes, 1, 1) // it was not paused between two polls
	r.add(ids.CounterPFCPauses, 1, 1)
	r.run(1500*time.Millisecond, fresh)
	if got := r.events(); got != "" {
		t.Fatalf("events = %q", got)
	}
	r.run(time.Second, fresh)
	a := r.shown().Alarms
	if len(a) != 1 || a[0].Kind != StuckAlarm || a[0].Class != 3 || !strings.Contains(a[0].Text, "port 1 (h1) class 3: ") || !strings.Contains(a[0].Text, "4000 B") {
		t.Errorf("alarms = %+v", a)
	}
	if e := r.callbacks.Events[0]; e.Class == nil || *e.Class != 3 {
		t.Errorf("event = %+v", e)
	}
	// The alarm stays during a new session, and while the port does not report.
	r.attach()
	r.dead = true
	r.run(time.Second, fresh)
	if got := r.events(); got != "pfc.stuck" || len(r.shown().Alarms) != 1 {
		t.Errorf("events = %q", got)
	}
	r.dead = false
	r.report.Buffer.PausedQueues = 0
	r.run(time.Second, nil)
	if got := r.events(); got != "pfc.stuck_over" {
		t.Errorf("events = %q", got)
	}
}

func TestLosslessDrops(t *testing.T) {
	r := newRig(t)
	r.add(ids.CounterLosslessDrops, 1<<3|3, 5) // it began before the loop, so the start is unknown
	r.run(time.Second, nil)
	if got := r.events(); got != "" {
		t.Fatalf("events = %q", got)
	}
	r.add(ids.CounterLosslessDrops, 1<<3|3, 2)
	r.run(500*time.Millisecond, nil)
	if len(r.callbacks.Events) != 1 || r.callbacks.Events[0].Kind != DropAlarm || r.callbacks.Events[0].Severity != pb.Event_SEVERITY_ERROR || *r.callbacks.Events[0].Class != 3 || r.state().LosslessDrops[3] != 7 {
		t.Fatalf("events = %+v, port %+v", r.callbacks.Events, r.state())
	}
	r.add(ids.CounterLosslessDrops, 1<<3|3, 1) // the same alarm
	r.run(3*time.Second, nil)
	if got := r.events(); got != "buffer.lossless_drop buffer.lossless_drop_over" {
		t.Errorf("events = %q", got)
	}
	// The loop also notices an alarm that began while no loop ran.
	r.add(ids.CounterLosslessDrops, 1<<3|3, 1)
	r.attach()
	r.run(500*time.Millisecond, nil)
	if got := r.events(); got != DropAlarm {
		t.Errorf("events = %q", got)
	}
	// Without a policy all alarms end.
	r.attach("policy: dsh ", `policy: "off" `)
	if got := r.events(); got != "buffer.lossless_drop_over" || r.loop != nil || r.shown().Policy != "off" {
		t.Errorf("events = %q, buffer %+v", got, r.shown())
	}
}
