package tm_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

func pause(t testing.TB, m *tm.Manager, port uint32, q int, until, now units.Time) {
	t.Helper()
	if err := m.Pause(port, q, until, now); err != nil {
		t.Fatal(err)
	}
}

func TestPauseHoldsAQueueAndNoOther(t *testing.T) {
	m := newManager(t, tm.Config{Queues: 8}, 8*units.Mbps, 8*units.Mbps) // a byte lasts 1 us
	for _, q := range []uint8{3, 3, 1} {
		m.Enqueue(packet(1, q, 100), 0, 0)
	}
	m.Enqueue(packet(2, 3, 100), 0, 0)
	if got := drain(m, 10*us); len(got) != 2 {
		t.Fatalf("%d frames begun, want one at each port", len(got))
	}
	pause(t, m, 1, 3, 500*us, 10*us) // the frame on the wire goes on
	m.Enqueue(packet(1, 6, 100), 0, 150*us)
	got := drain(m, units.Second)
	for i, want := range []struct {
		q  uint8
		at units.Time
	}{{1, 100 * us}, {6, 200 * us}, {3, 500 * us}} {
		if got[i].p.Queue != want.q || got[i].at != want.at {
			t.Errorf("departure %d: queue %d at %v, want queue %d at %v", i, got[i].p.Queue, got[i].at, want.q, want.at)
		}
	}
	var st tm.PortStats
	m.Stats(1, &st)
	if q := st.Queues[3]; q.Paused.Count != 1 || q.Paused.Time != 490*us || q.Paused.Until != 500*us || q.Paused.Total(110*us) != 100*us || q.Paused.Total(units.Second) != 490*us {
		t.Errorf("paused %d times until %v for %v, %v by 110us", q.Paused.Count, q.Paused.Until, q.Paused.Time, q.Paused.Total(110*us))
	}
	if q := st.Queues[1]; q.Paused.Count != 0 || q.Paused.Time != 0 {
		t.Errorf("queue 1 was paused: %+v", q)
	}
}

func TestResumeRefreshAndShorten(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pauses [][2]units.Time // now, until
		leaves units.Time
		count  uint64
		total  units.Time
	}{
		{"expires", [][2]units.Time{{0, 50}}, 50, 1, 50},
		{"is resumed", [][2]units.Time{{0, 50}, {20, 20}}, 20, 1, 20},
		{"is refreshed", [][2]units.Time{{0, 50}, {30, 80}, {70, 120}}, 120, 1, 120},
		{"is refreshed as it ends", [][2]units.Time{{0, 50}, {50, 80}}, 80, 2, 80},
		{"is shortened", [][2]units.Time{{0, 50}, {10, 30}}, 30, 1, 30},
		{"is resumed at once", [][2]units.Time{{0, 50}, {0, 0}}, 0, 1, 0},
		{"is resumed, then paused", [][2]units.Time{{0, 50}, {20, 0}, {20, 60}}, 60, 2, 60},
		{"is resumed though not paused", [][2]units.Time{{0, 0}, {5, 5}}, 0, 0, 0},
		{"ends before the packet comes", [][2]units.Time{{0, 50}, {60, 70}}, 50, 2, 60},
	} {
		m := newManager(t, tm.Config{}, units.Gbps)
		m.Enqueue(packet(1, 0, 100), 0, 0)
		for _, p := range tt.pauses {
			pause(t, m, 1, 0, p[1], p[0])
		}
		if at, ok := m.Next(); !ok || at != tt.leaves {
			t.Errorf("a pause that %s: next departure at %v, want %v", tt.name, at, tt.leaves)
		}
		if got := drain(m, units.Second); len(got) != 1 || got[0].at != tt.leaves {
			t.Errorf("a pause that %s: left %+v, want at %v", tt.name, got, tt.leaves)
		}
		var st tm.PortStats
		m.Stats(1, &st)
		if q := st.Queues[0]; q.Paused.Count != tt.count || q.Paused.Time != tt.total {
			t.Errorf("a pause that %s: counted %d times, %v; want %d, %v", tt.name, q.Paused.Count, q.Paused.Time, tt.count, tt.total)
		}
	}
}

func TestPauseErrors(t *testing.T) {
	m := newManager(t, tm.Config{Queues: 2}, 0)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{m.Pause(7, 0, 1, 0), "port 7 does not exist: want one of [1]"},
		{m.Pause(1, 2, 1, 0), "port 1 has no queue 2: want 0 to 1"},
		{m.Pause(1, -1, 1, 0), "port 1 has no queue -1"},
	} {
		if tt.err == nil || !strings.HasPrefix(tt.err.Error(), tt.want) {
			t.Errorf("error %v, want %q", tt.err, tt.want)
		}
	}
}

// event is what happens to a switch: a packet or a pause frame arrives.
type event struct {
	arrival
	pause bool
	until units.Time
}

// drawPaused adds pauses, refreshes and resumptions to a trace.
func drawPaused(t *rapid.T) (tm.Config, []units.Rate, []event) {
	c, rates, trace := draw(t)
	now := units.Time(0)
	events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
		now += units.Time(rapid.IntRange(0, 900).Draw(t, "pause gap")) * us
		e := event{pause: true, until: now + units.Time(rapid.IntRange(0, 2000).Draw(t, "pause"))*us}
		e.at, e.port, e.queue = now, uint32(rapid.IntRange(1, 2).Draw(t, "paused port")), uint8(rapid.IntRange(0, c.Queues-1).Draw(t, "paused queue"))
		return e
	}), 0, 60).Draw(t, "pauses")
	for _, a := range trace {
		events = append(events, event{arrival: a})
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	return c, rates, events
}

// A driver that is late with every call gets the same departures, to the picosecond.
func TestLateDriverOfPausedQueues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, rates, events := drawPaused(rt)
		late := rapid.SliceOfN(rapid.Bool(), len(events), len(events)).Draw(rt, "late")
		run := func(lateAt func(int) bool) (out [4][]engine.Packet) {
			m := newManager(t, c, rates...)
			collect := func(s []sent) {
				for _, s := range s {
					p := *s.p
					p.EnqDepth = 0
					out[p.EgressPort] = append(out[p.EgressPort], p)
				}
			}
			for i, e := range events {
				if !lateAt(i) {
					collect(drain(m, e.at-1))
				}
				if e.pause {
					pause(t, m, e.port, int(e.queue), e.until, e.at)
				} else {
					m.Enqueue(packet(e.port, e.queue, e.bytes), 0, e.at)
				}
			}
			collect(drain(m, units.MaxTime-1))
			return out
		}
		want := run(func(int) bool { return false })
		got := run(func(i int) bool { return late[i] })
		never := run(func(int) bool { return true })
		for port := range want {
			for _, got := range [][]engine.Packet{got[port], never[port]} {
				if !slices.EqualFunc(want[port], got, func(a, b engine.Packet) bool {
					return a.EnqTime == b.EnqTime && a.DeqTime == b.DeqTime && a.DeqDepth == b.DeqDepth && a.Queue == b.Queue && a.Bytes == b.Bytes
				}) {
					rt.Fatalf("port %d: on time\n%+v\nlate\n%+v", port, want[port], got)
				}
			}
		}
	})
}

// pausesOf says by the plainest rule whether a queue is paused: the last frame about it
// counts, until its time is over.
func pausesOf(events []event, port uint32, queue uint8) func(at units.Time) (until units.Time) {
	return func(at units.Time) units.Time {
		until := at
		for _, e := range events {
			if e.pause && e.port == port && e.queue == queue && e.at <= at {
				until = e.until
			}
		}
		return max(until, at)
	}
}

// No frame starts during a pause of its queue. Queues that are not paused continue in the order of
// the schedule. A frame waits only for the wire, for its own queue's pause, and for queues that
// come before it.
func TestPauseIsObeyedAndNothingElseWaits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, rates, events := drawPaused(rt)
		m := newManager(t, c, rates...)
		var out []sent
		for _, e := range events {
			out = append(out, drain(m, e.at-1)...)
			if e.pause {
				pause(t, m, e.port, int(e.queue), e.until, e.at)
			} else {
				m.Enqueue(packet(e.port, e.queue, e.bytes), 0, e.at)
			}
		}
		out = append(out, drain(m, units.MaxTime-1)...)
		if _, ok := m.Next(); ok {
			rt.Fatal("packets are left")
		}
		for port := uint32(1); port <= 2; port++ {
			checkPort(rt, c, events, port, slices.DeleteFunc(slices.Clone(out), func(s sent) bool { return s.p.EgressPort != port }))
		}
	})
}

func checkPort(rt *rapid.T, c tm.Config, events []event, port uint32, out []sent) {
	// opens is when a queue may send after t.
	opens := func(q uint8, t units.Time) units.Time {
		paused := pausesOf(events, port, q)
		for {
			until := paused(t)
			for _, e := range events { // a resumption or another pause inside it
				if e.pause && e.port == port && e.queue == q && e.at > t && e.at < until {
					until = e.at
				}
			}
			if until == t {
				return t
			}
			t = until
		}
	}
	free := units.Time(0)
	for i, s := range out {
		if until := opens(s.p.Queue, s.at); until != s.at {
			rt.Fatalf("port %d: queue %d sent at %v, paused until %v", port, s.p.Queue, s.at, until)
		}
		seen := map[uint8]bool{}
		for _, w := range out[i:] { // the heads of the queues
			if seen[w.p.Queue] {
				continue
			}
			seen[w.p.Queue] = true
			at := opens(w.p.Queue, max(free, w.p.EnqTime))
			if at < s.at {
				rt.Fatalf("port %d: idle from %v to %v, while queue %d could have sent at %v", port, free, s.at, w.p.Queue, at)
			}
			if at == s.at && c.Schedule[w.p.Queue].Level > c.Schedule[s.p.Queue].Level {
				rt.Fatalf("port %d: queue %d sent at %v before queue %d, which goes first", port, s.p.Queue, s.at, w.p.Queue)
			}
		}
		free = s.finish
	}
}

// Queues that take turns keep their shares while another queue of the same level is paused. A
// queue that is paused again and again gets no more than its share when it may send.
func TestSharesUnderPauses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 8), 3, 6).Draw(rt, "weights")
		gap := units.Time(rapid.IntRange(1, 200).Draw(rt, "gap")) * us
		length := units.Time(rapid.IntRange(0, 200).Draw(rt, "pause")) * us
		const size = 1000
		m := newManager(t, tm.Config{Queues: len(weights), Schedule: tm.Weighted(weights)}, units.Gbps)
		for q := range weights {
			for range 4 {
				m.Enqueue(packet(1, uint8(q), size), 0, 0)
			}
		}
		got := make([]float64, len(weights))
		next := units.Time(0)
		for total := 0; total < 4000; total++ {
			d, ok := m.Dequeue(units.MaxTime - 1)
			if !ok {
				rt.Fatal("nothing leaves")
			}
			m.OnTransmit(size)
			if d.At >= next {
				pause(t, m, 1, 0, d.At+length, d.At)
				next = d.At + gap
			}
			m.Enqueue(d.Packet, 0, d.At)
			m.Complete()
			got[d.Packet.Queue] += size
		}
		round := 0.0
		for _, w := range weights {
			round += float64(w) * float64(tm.DefaultQuantum)
		}
		base := got[1] / float64(weights[1])
		for q := 2; q < len(weights); q++ {
			if diff := got[q] - base*float64(weights[q]); diff > 2*round || diff < -2*round {
				rt.Errorf("queue %d of weight %d sent %v, queue 1 of weight %d sent %v", q, weights[q], got[q], weights[1], got[1])
			}
		}
		if most := base*float64(weights[0]) + 2*round; got[0] > most {
			rt.Errorf("queue 0, paused now and then, sent %v, more than its share of %v", got[0], most)
		}
	})
}

// Pauses do not pile up, even if nothing reads them.
func TestPausesAllocateNothing(t *testing.T) {
	m := newManager(t, tm.Config{Queues: 8}, units.Gbps)
	p := packet(1, 3, 1000)
	now := units.Time(0)
	round := func() {
		for q := range 8 {
			pause(t, m, 1, q, now+5*us, now)
			pause(t, m, 1, q, now+1*us, now+1*us)
			pause(t, m, 1, q, now+4*us, now+2*us)
		}
		m.Enqueue(p, 0, now+2*us)
		now += 20 * us
		if d := drain2(m, now); d != 1 {
			t.Fatalf("%d packets left, want 1", d)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round, want none", n)
	}
}

func drain2(m *tm.Manager, now units.Time) (n int) {
	for d, ok := m.Dequeue(now); ok; d, ok = m.Dequeue(now) {
		m.OnTransmit(units.Bytes(d.Packet.Bytes))
		m.Complete()
		n++
	}
	return n
}

// backlog gives a port of two queues that take turns more than they can send.
func backlog(t *testing.T, quanta [2]units.Bytes, size int) *tm.Manager {
	m := newManager(t, tm.Config{Queues: 2, Schedule: []tm.Share{{Quantum: quanta[0]}, {Quantum: quanta[1]}}, Limit: tm.Limit{Packets: 1000}}, units.Gbps)
	for q := range uint8(2) {
		for range 1000 {
			m.Enqueue(packet(1, q, size), 0, 0)
		}
	}
	return m
}

// one lets the next packet leave.
func one(m *tm.Manager) (queue uint8, finish units.Time) {
	d, _ := m.Dequeue(units.MaxTime - 1)
	finish = m.OnTransmit(units.Bytes(d.Packet.Bytes))
	m.Complete()
	return d.Packet.Queue, finish
}

// A queue whose turns pauses cut short does not save them up for a burst.
func TestPausedTurnsAreNotSavedUp(t *testing.T) {
	m := backlog(t, [2]units.Bytes{8000, 1000}, 1000)
	for range 100 {
		if q, now := one(m); q == 0 {
			pause(t, m, 1, 0, now+us, now) // over when queue 1 has sent
		}
	}
	burst := 0
	for q, _ := one(m); q == 0; q, _ = one(m) {
		burst++
	}
	if burst > 9 {
		t.Errorf("a burst of %d packets, want a quantum's 8 and at most one", burst)
	}
}

// A queue that needs many rounds for a packet gets there although it is paused now and then.
func TestPauseDoesNotStarveASmallShare(t *testing.T) {
	m := backlog(t, [2]units.Bytes{100, 1000}, 1500)
	sent := [2]int{}
	for i := range 660 {
		q, now := one(m)
		sent[q]++
		if i%5 == 0 {
			pause(t, m, 1, 0, now+us, now)
		}
	}
	if sent[0] < 40 {
		t.Errorf("of 660 packets queue 0 sent %d, want about an eleventh", sent[0])
	}
}
