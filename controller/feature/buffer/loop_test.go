package buffer

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

var spfc = []string{"policy: dsh ", "policy: spfc "}

// departing adds departures of port 1 at a share of its 100 Mb/s.
func (r *rig) departing(share float64) func(time.Duration) {
	return func(step time.Duration) {
		r.add(ids.CounterIngressDepartures, 1, int64(share*100e6/8*step.Seconds()))
	}
}

// The state machine of SYSTEMS.md §2 with K = 5 and a period of 100 ms.
func TestVictims(t *testing.T) {
	r := newRig(t, spfc...)
	const victim = "ingress.buffer.victim_port ingress_port=1 → set_victim()"
	steps := []struct {
		what   string
		share  float64
		paused bool
		pauses int64
		want   string
	}{
		{"idle", 0, false, 0, ""},
		{"just below C/K", 0.19, false, 0, ""},
		{"above C/K", 0.22, false, 0, victim},
		{"much above", 0.9, false, 0, victim},
		{"it pauses", 0.9, true, 1, ""},
		{"still paused", 0.9, true, 0, ""},
		{"resumed, and above C/K", 0.9, false, 0, victim},
		{"below again", 0.1, false, 0, ""},
	}
	for _, s := range steps {
		r.add(ids.CounterPFCPauses, 1, s.pauses)
		r.report.Buffer.PausedQueues = 0
		if s.paused {
			r.report.Buffer.PausedQueues = 1 << 3
		}
		r.run(500*time.Millisecond, func(step time.Duration) {
			r.departing(s.share)(step)
			r.report.Buffer.LastPause = r.ticks()
		})
		if got := r.overlay(); got != s.want || r.state().Victim != (s.want != "") {
			t.Errorf("%s: overlay %q, want %q; state %+v", s.what, got, s.want, r.state())
		}
	}
	if p := r.state(); p.Turns != 4 || p.Pauses != 1 || p.Departed == 0 {
		t.Errorf("port = %+v", p)
	}
	if got := r.events(); got != "" {
		t.Errorf("events = %q", got)
	}
}

// A tick that comes late has counted for longer, and makes no victim of a slow port.
func TestLateTick(t *testing.T) {
	r := newRig(t, spfc...)
	r.run(time.Second, r.departing(0.1))
	r.now = r.now.Add(2 * time.Second)
	r.departing(0.1)(2 * time.Second)
	r.run(r.loop.Interval(), r.departing(0.1))
	if r.state().Victim || r.state().Turns != 0 {
		t.Errorf("a late tick made a victim: %+v", r.state())
	}
}

// A switch that was restarted begins anew, in the same session or in another one.
func TestRestart(t *testing.T) {
	r := newRig(t, spfc...)
	r.add(ids.CounterIngressDepartures, 2, 5000)
	r.run(time.Second, r.departing(0.5))
	if !r.state().Victim {
		t.Fatal("no victim")
	}
	clear(r.counters)
	r.run(r.loop.Interval()*3, nil)
	if r.state().Victim || r.overlay() != "" {
		t.Errorf("after the restart: %+v", r.state())
	}
	if len(r.hub.Events) != 1 || r.hub.Events[0].Kind != "buffer.restarted" || !strings.Contains(r.hub.Events[0].Message, "port 2 had 5000 B departed and now has 0 B") {
		t.Errorf("events = %+v", r.hub.Events)
	}
	r.hub.Events = nil
	r.run(time.Second, r.departing(0.5))
	if !r.state().Victim {
		t.Error("the state machine does not run again")
	}
	clear(r.counters)
	r.attach(spfc...)
	r.run(500*time.Millisecond, nil)
	if got := r.events(); got != "buffer.restarted" || r.state().Victim {
		t.Errorf("with a new session: events %q, %+v", got, r.state())
	}
}

func TestPausedTimeAndPools(t *testing.T) {
	r := newRig(t)
	r.report.Buffer = pollreport.Buffer{
		PausedQueues: 1 << 3, Insured: 9, Used: pollreport.Pools{Shared: 748000, Insurance: 9}, Peak: pollreport.Pools{Shared: 800000},
		Private: [8]uint32{3: 3000}, Shared: [8]uint32{0: 5, 3: 7000},
	}
	r.run(time.Second, func(time.Duration) { r.report.Buffer.LastPause = r.ticks() })
	r.report.Buffer.PausedQueues = 0
	r.run(time.Second, nil)
	p, b := r.state(), r.hub.Buffers["leaf1"]
	if d := p.PausedTime[3] - time.Second; d < -100*time.Millisecond || d > 100*time.Millisecond || p.PausedTime[2] != 0 {
		t.Errorf("paused for %v", p.PausedTime)
	}
	if p.Private[3] != 3000 || p.Shared[0] != 5 || p.Insured != 9 || b.Used != (view.Pools{Shared: 748000, Insurance: 9}) || b.Peak.Shared != 800000 || b.Size.Shared != 15748000 {
		t.Errorf("shown is %+v", b)
	}
	// T = (15 748 000 − 748 000) / 16.
	if b.Threshold != 937500 || b.Policy != "dsh" || b.Time.IsZero() {
		t.Errorf("shown is %+v", b)
	}
}

// A PAUSE of 65535 quanta at 100 Mb/s lasts 335.5 ms: it is repeated after 167.8 ms, and
// again when the first repetition is lost.
func TestRefresh(t *testing.T) {
	r := newRig(t, "stuck: 2s", "stuck: 1000s")
	r.report.Buffer.PausedQueues, r.report.Buffer.LastPause = 1<<3, r.ticks()
	begin := r.now
	obey := true
	r.run(2*time.Second, func(time.Duration) {
		if n := len(r.refresh); obey && n > 0 {
			r.report.Buffer.LastPause = uint64(r.refresh[n-1].UnixMicro())
		}
	})
	if len(r.refresh) < 8 || len(r.refresh) > 12 {
		t.Fatalf("%d refreshes in 2 s", len(r.refresh))
	}
	last := begin
	for _, at := range r.refresh {
		if d := at.Sub(last); d < 167*time.Millisecond || d > 335*time.Millisecond {
			t.Errorf("a refresh after %v", d)
		}
		last = at
	}
	p := r.state()
	if p.Late <= 0 || p.MostLate > 60*time.Millisecond || p.MostLate < p.Late {
		t.Errorf("late by %v, at most %v", p.Late, p.MostLate)
	}
	if got := r.events(); got != "" {
		t.Errorf("events = %q", got)
	}
	// Refreshes that have no effect are repeated, and once the PAUSE has expired it is told.
	obey = false
	n := len(r.refresh)
	r.run(time.Second, nil)
	if len(r.refresh)-n < 9 {
		t.Errorf("%d attempts", len(r.refresh)-n)
	}
	alarms := r.hub.Buffers["leaf1"].Alarms
	if len(alarms) != 1 || alarms[0].Kind != view.LateAlarm || alarms[0].Port != 1 || alarms[0].Class != -1 || !strings.Contains(alarms[0].Text, "refreshes had no effect") {
		t.Errorf("alarms = %+v", alarms)
	}
	obey = true
	r.run(time.Second, func(time.Duration) { r.report.Buffer.LastPause = r.ticks() })
	if got := r.events(); got != "pfc.refresh_late pfc.refresh_late_over" || len(r.hub.Buffers["leaf1"].Alarms) != 0 {
		t.Errorf("events = %q", got)
	}
	// Nothing is sent for ports that have nothing paused.
	r.report.Buffer.PausedQueues = 0
	r.run(100*time.Millisecond, nil)
	n = len(r.refresh)
	r.run(time.Second, nil)
	if len(r.refresh) != n {
		t.Error("a refresh for a port that is not paused")
	}
}

func TestRefreshImpossible(t *testing.T) {
	r := newRig(t, "pause_quanta: 65535", "pause_quanta: 3000")
	if got := r.events(); got != strings.TrimSpace(strings.Repeat("pfc.refresh_off ", 4)) {
		t.Errorf("events = %q", got)
	}
	r.report.Buffer.PausedQueues = 1 << 3
	r.run(time.Second, nil)
	if len(r.refresh) != 0 {
		t.Errorf("%d refreshes", len(r.refresh))
	}
}

func TestReceive(t *testing.T) {
	r := newRig(t)
	r.run(time.Second, nil)
	report := (&pollreport.Report{Port: 1, Time: r.ticks(), Buffer: pollreport.Buffer{Insured: 77}}).Append(nil)
	if r.loop.Receive(r.now, message(ids.PacketInPoll, append(report, "headgate"...))) {
		t.Error("the answer to another's poll was taken")
	}
	r.dead = true
	r.run(r.loop.Interval(), nil)
	if r.state().Insured != 77 {
		t.Error("the answer to another's poll was not looked at")
	}
	if r.loop.Receive(r.now, message(5, report)) || r.loop.Receive(r.now, message(ids.PacketInPoll, report[:50])) {
		t.Error("something else was taken")
	}
}
