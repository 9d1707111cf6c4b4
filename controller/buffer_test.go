package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/units"
)

// TestLiveBufferPolicy changes a switch's policy several times while two hosts send to a third as
// fast as PFC allows. Every change takes effect at once, no lossless frame is lost, and PAUSEs are
// real PFC frames.
func TestLiveBufferPolicy(t *testing.T) {
	r := newBufferRig(t)
	r.apply()
	order := []string{"off", "sih", "dsh", "spfc", "dsh+spfc", "static", "off", "adaptive"}
	for i := 1; i < len(order); i++ {
		from, to := order[i-1], order[i]
		if i == 1 || from == "off" {
			// Without a policy nothing limits a burst, so the burst begins after the first policy.
			r.policy(from, to)
			r.send(0, true)
			r.send(2, true)
		} else {
			began := r.policy(from, to)
			if to != "off" {
				eventually(t, "the new policy is shown", func() bool { return r.buffer().GetSwitch().GetPolicy() == to })
				r.pausesAfter(began, to)
			}
		}
		if to != "off" {
			r.pausesAfter(time.Now(), to)
			eventually(t, "a poll sees the pause", func() bool { return r.classes()[0].GetPausedTime().AsDuration() > 0 })
			continue
		}
		r.send(0, false)
		r.send(2, false)
		r.drained(from)
		eventually(t, "off is shown", func() bool { return r.buffer().GetSwitch().GetPolicy() == "off" })
	}
	r.send(0, false)
	r.send(2, false)
	r.drained("adaptive")
	eventually(t, "empty pools", func() bool {
		b := r.buffer()
		return b.GetSwitch().GetPolled() != nil && !slices.ContainsFunc(b.GetPools(), func(p *pb.BufferPool) bool { return p.UsedBytes != 0 })
	})
	for _, c := range r.classes() {
		if c.GetLosslessDrops() != 0 {
			t.Errorf("port %d dropped %v", c.Port, c.GetLosslessDrops())
		}
	}
	if p := r.port(0); p.Pauses == 0 || p.Resumes == 0 || p.DepartedBytes == 0 {
		t.Errorf("port 1 = %+v", p)
	}
}

// pausesAfter waits for a PAUSE on the wire after a given time.
func (r *bufferRig) pausesAfter(at time.Time, policy string) {
	r.t.Helper()
	h := r.hosts[0]
	eventually(r.t, "a PAUSE under "+policy, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.pauses) > 0 && h.pauses[len(h.pauses)-1].After(at)
	})
}

// drained waits until all that was sent has arrived.
func (r *bufferRig) drained(policy string) {
	r.t.Helper()
	text := func() string {
		a, _, _, _ := r.hosts[0].counts()
		b, _, _, _ := r.hosts[2].counts()
		_, got, _, _ := r.hosts[1].counts()
		return fmt.Sprintf("%d + %d sent, %d arrived", a, b, got)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		a, _, _, _ := r.hosts[0].counts()
		b, _, _, _ := r.hosts[2].counts()
		if _, got, _, _ := r.hosts[1].counts(); got == a+b {
			break
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("under %s: %s", policy, text())
		}
		time.Sleep(5 * time.Millisecond)
	}
	for i, h := range r.hosts {
		h.mu.Lock()
		if h.wrong != nil {
			r.t.Errorf("host %d: %v", i, h.wrong)
		}
		h.mu.Unlock()
	}
}

// TestVictimOfRestartedSwitch: a port that sends much is a victim, a port that sends little is not,
// and after a restart of the switch no port is a victim.
func TestVictimOfRestartedSwitch(t *testing.T) {
	r := newBufferRig(t)
	sub := r.c.Events().Subscribe(events.Options[*pb.Event]{Match: func(e *pb.Event) bool { return e.Kind == "buffer.restarted" }})
	defer sub.Close()
	r.policy("off", "spfc")
	r.send(0, true)
	eventually(t, "port 1 is a victim's", func() bool { return r.port(0).Victim })
	if r.port(2).Victim {
		t.Error("port 3 is a victim's, and sends nothing")
	}
	// The entry is installed, and a plan would not remove it.
	plan, err := r.c.Plan(t.Context(), "f", r.yaml, 0)
	if err != nil || len(plan.Switches[0].Changes) != 0 {
		t.Errorf("plan of what is = %+v, %v", plan, err)
	}
	r.send(0, false)
	eventually(t, "port 1 is normal", func() bool { return r.port(0).Port == 1 && !r.port(0).Victim })
	turns := r.port(0).Turns
	if turns < 2 {
		t.Errorf("%d turns", turns)
	}
	r.send(0, true)
	eventually(t, "port 1 is a victim's again", func() bool { return r.port(0).Victim })
	r.do(func() { r.hosts[0].on = false })
	r.sw.Close()
	r.becomes("s1", pb.SwitchStatus_STATE_DISCONNECTED)
	r.do(func() { err = r.startSwitch() })
	if err != nil {
		t.Fatal(err)
	}
	r.becomes("s1", pb.SwitchStatus_STATE_READY)
	if list, _, err := sub.Next(t.Context()); err != nil || list[0].Subject != "s1" {
		t.Errorf("events = %+v, %v", list, err)
	}
	eventually(t, "port 1 is normal on a switch that was just started", func() bool { return !r.port(0).Victim })
	r.send(0, true)
	eventually(t, "port 1 is a victim's on the new switch", func() bool { return r.port(0).Victim })
	r.send(0, false)
}

// TestStuckQueue: the receiver's port stops, and no packet arrives or leaves. So the controller
// repeats the PAUSE: the sender stays paused, and the watchdog raises an alarm.
func TestStuckQueue(t *testing.T) {
	r := newBufferRig(t)
	// A PAUSE lasts for 768 ms.
	r.edit("threshold: 30KB}", "threshold: 30KB, pause_quanta: 30000, watchdog: {stuck: 1500ms}}")
	sub := r.c.Events().Subscribe(events.Options[*pb.Event]{Match: func(e *pb.Event) bool { return strings.HasPrefix(e.Kind, "pfc.stuck") }})
	defer sub.Close()
	r.policy("off", "sih")
	if err := r.sw.SetPortRate(2, units.Kbps); err != nil {
		t.Fatal(err)
	}
	r.send(0, true)
	eventually(t, "port 1 is paused", func() bool { return r.port(0).Paused == "3" })
	before, _, _, _ := r.hosts[0].counts()
	next := func() *pb.Event {
		list, _, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	if e := next(); e.Kind != buffer.StuckAlarm || e.Subject != "s1" || e.Port != 1 || e.Class == nil || *e.Class != 3 {
		t.Errorf("event = %+v", e)
	}
	after, _, pauses, _ := r.hosts[0].counts()
	// Frames that were in flight at the PAUSE may still count.
	if after > before+2 || pauses < 3 {
		t.Errorf("%d frames were sent under %d PAUSE frames", after-before, pauses)
	}
	// The event comes earlier than the status that shows it.
	eventually(t, "the alarm is shown", func() bool { return len(r.buffer().GetAlarms()) > 0 })
	p := r.port(0)
	if p.Pauses != 1 || p.Refreshes < 2 {
		t.Errorf("port 1 = %+v, alarms %+v", p, r.buffer().GetAlarms())
	}
	r.send(0, false)
	if err := r.sw.SetPortRate(2, hostRate); err != nil {
		t.Fatal(err)
	}
	r.drained("sih")
	if e := next(); e.Kind != buffer.StuckAlarm+"_over" || e.Since == nil {
		t.Errorf("event = %+v", e)
	}
	eventually(t, "nothing is paused", func() bool { return r.port(0).Paused == "" && len(r.buffer().GetAlarms()) == 0 })
}
