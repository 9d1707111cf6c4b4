package buffer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

var spfc = []string{"policy: dsh ", "policy: spfc "}

// departing adds departures of port 1 at a share of its rate of 100 Mb/s.
func (r *rig) departing(share float64) func(time.Duration) {
	return func(step time.Duration) {
		r.add(ids.CounterIngressDepartures, 1, int64(share*100e6/8*step.Seconds()))
	}
}

// The program has SPFC's state machine, so the loop only shows its states.
func TestVictims(t *testing.T) {
	r := newRig(t, spfc...)
	if every := newRig(t).loop.Interval(); r.loop.Interval() != every {
		t.Errorf("ticks every %v, under dsh every %v", r.loop.Interval(), every)
	}
	for _, victim := range []bool{false, true, true, false, true} {
		r.report.Buffer.Victim = victim
		r.run(500*time.Millisecond, r.departing(0.1))
		if r.state().Victim != victim {
			t.Errorf("shown as %+v, want victim %v", r.state(), victim)
		}
	}
	if p := r.state(); p.Turns != 3 || p.Departed == 0 {
		t.Errorf("port = %+v", p)
	}
}

// The loop of a restarted switch starts again, in the same session or in a new one.
func TestRestart(t *testing.T) {
	r := newRig(t, spfc...)
	r.add(ids.CounterIngressDepartures, 2, 5000)
	r.report.Buffer.Victim = true
	r.run(time.Second, r.departing(0.5))
	if !r.state().Victim {
		t.Fatal("no victim")
	}
	clear(r.counters)
	r.report.Buffer.Victim = false
	r.run(time.Second, nil)
	if r.state().Victim {
		t.Errorf("after the restart: %+v", r.state())
	}
	if len(r.callbacks.Events) != 1 || r.callbacks.Events[0].Kind != "buffer.restarted" || !strings.Contains(r.callbacks.Events[0].Message, "port 2 had 5000 B departed and now has 0 B") {
		t.Errorf("events = %+v", r.callbacks.Events)
	}
	r.callbacks.Events = nil
	r.run(time.Second, r.departing(0.5))
	clear(r.counters)
	r.attach(spfc...)
	r.run(500*time.Millisecond, nil)
	if got := r.events(); got != "buffer.restarted" {
		t.Errorf("with a new session: events %q", got)
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
	p, b := r.state(), r.shown()
	if d := p.PausedTime[3] - time.Second; d < -100*time.Millisecond || d > 100*time.Millisecond || p.PausedTime[2] != 0 {
		t.Errorf("paused for %v", p.PausedTime)
	}
	if p.Private[3] != 3000 || p.Shared[0] != 5 || p.Insured != 9 || b.Used != (pollreport.Pools{Shared: 748000, Insurance: 9}) || b.Peak.Shared != 800000 || b.Size.Shared != 15664000 {
		t.Errorf("shown is %+v", b)
	}
	// T = (15 664 000 − 748 000) / 16.
	if b.Threshold != 932250 || b.Policy != "dsh" || b.Time.IsZero() {
		t.Errorf("shown is %+v", b)
	}
}

// A PAUSE of 65535 quanta at 100 Mb/s lasts 335.5 ms. It is repeated after 167.8 ms, and again if
// the first repetition is lost.
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
	// Refreshes without effect are repeated, and an event reports when the PAUSE has expired.
	obey = false
	n := len(r.refresh)
	r.run(time.Second, nil)
	if len(r.refresh)-n < 9 {
		t.Errorf("%d attempts", len(r.refresh)-n)
	}
	alarms := r.shown().Alarms
	if len(alarms) != 1 || alarms[0].Kind != LateAlarm || alarms[0].Port != 1 || alarms[0].Class != -1 || !strings.Contains(alarms[0].Text, "refreshes had no effect") {
		t.Errorf("alarms = %+v", alarms)
	}
	obey = true
	r.run(time.Second, func(time.Duration) { r.report.Buffer.LastPause = r.ticks() })
	if got := r.events(); got != "pfc.refresh_late pfc.refresh_late_over" || len(r.shown().Alarms) != 0 {
		t.Errorf("events = %q", got)
	}
	// Nothing is sent for ports without a paused class.
	r.report.Buffer.PausedQueues = 0
	r.run(100*time.Millisecond, nil)
	n = len(r.refresh)
	r.run(time.Second, nil)
	if len(r.refresh) != n {
		t.Error("a refresh for a port that is not paused")
	}
}

// TestReclaim: BMv2's queues always drain, so a port there that stays paused without departures
// waits for lost packets, and its memory is reclaimed. Elsewhere the packets may still be held.
func TestReclaim(t *testing.T) {
	forgets := func(r *rig, d time.Duration) int {
		r.forget = nil
		r.run(d, nil)
		return len(r.forget)
	}
	for _, tt := range []struct {
		target string
		want   int
	}{{"bmv2", 1}, {"embedded", 0}} {
		r := newRig(t, "target: embedded", "target: "+tt.target)
		r.report.Buffer.PausedQueues = 1 << 3
		r.report.Buffer.Shared[3] = 5000
		departs := func(time.Duration) { r.add(ids.CounterIngressDepartures, 1, 1000) }
		r.run(6*time.Second, departs)
		if n := len(r.forget); n != 0 {
			t.Errorf("%s: %d accounts were emptied of a port that forwards", tt.target, n)
		}
		if n := forgets(r, 3*time.Second); n != tt.want {
			t.Errorf("%s: %d accounts were emptied of a port of which nothing leaves, want %d", tt.target, n, tt.want)
		}
		if got := strings.Contains(r.events(), "buffer.reclaimed"); got != (tt.want > 0) {
			t.Errorf("%s: it is said: %v", tt.target, got)
		}
		r.report.Buffer = pollreport.Buffer{}
		if n := forgets(r, 5*time.Second); n != 0 {
			t.Errorf("%s: %d accounts were emptied of a port that pauses nobody", tt.target, n)
		}
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

// The loop uses every report completely, whoever asked for it.
func TestReceive(t *testing.T) {
	r := newRig(t)
	r.run(time.Second, nil)
	report := pollreport.Report{Port: 1, Time: r.ticks(), Buffer: pollreport.Buffer{Insured: 77}}
	r.loop.Receive(r.now, feature.Message{Report: &feature.Report{Report: report}})
	r.loop.Receive(r.now, feature.Message{Packet: &pipeline.PacketIn{}})
	r.dead = true
	r.run(r.loop.Interval(), nil)
	if r.state().Insured != 77 {
		t.Error("a report was not looked at")
	}
}

// A probe after a silence makes the port repeat its pause state. Regular probes and other packets
// do not.
func TestLinkReturns(t *testing.T) {
	frame := func(etherType string) *pipeline.PacketIn {
		return &pipeline.PacketIn{Fields: map[string]uint64{"ingress_port": 3}, Payload: []byte("destinsource" + etherType + "rest")}
	}
	r := newRig(t)
	interval := environment(t).Config.Controller.ProbeInterval
	told := func(after time.Duration, in *pipeline.PacketIn) int {
		t.Helper()
		r.now = r.now.Add(after)
		r.sw.Out = nil
		r.loop.Receive(r.now, feature.Message{Packet: in})
		for _, out := range r.sw.Out {
			if port, mode := bytestring.Low64(out.GetMetadata()[0].Value), bytestring.Low64(out.GetMetadata()[2].Value); port != 3 || mode != ids.PacketOutRefresh {
				t.Errorf("packet-out of mode %d for port %d", mode, port)
			}
		}
		return len(r.sw.Out)
	}
	const lldp = "\x88\xcc"
	for _, s := range []struct {
		what  string
		after time.Duration
		in    *pipeline.PacketIn
		want  int
	}{
		{"the first probe", interval, frame(lldp), 1},
		{"the next", interval, frame(lldp), 0},
		{"one that is late", interval * 5 / 4, frame(lldp), 0},
		{"a packet that is no probe", 2 * interval, frame("\x08\x06"), 0},
		{"a short packet", 0, &pipeline.PacketIn{Fields: map[string]uint64{"ingress_port": 3}, Payload: []byte("short")}, 0},
		{"after a silence", 0, frame(lldp), 1},
		{"then", interval, frame(lldp), 0},
	} {
		if got := told(s.after, s.in); got != s.want {
			t.Errorf("%s: %d packet-outs, want %d", s.what, got, s.want)
		}
	}
	r.sw.Err = errors.New("gone")
	if told(10*interval, frame(lldp)); r.loop.Tick(t.Context(), r.now) == nil {
		t.Error("an error is lost")
	}
}
