package tm_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

type arrival struct {
	at    units.Time
	port  uint32
	queue uint8
	bytes int
}

// draw makes a switch of two ports and a trace of arrivals for them.
func draw(t *rapid.T) (tm.Config, []units.Rate, []arrival) {
	weights := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 8).Draw(t, "weights")
	c := tm.Config{
		Queues:   len(weights),
		Schedule: tm.Weighted(weights),
		Overhead: units.Bytes(rapid.IntRange(0, 24).Draw(t, "overhead")),
		Limit:    tm.Limit{Packets: 1 << 20},
	}
	rates := rapid.SliceOfN(rapid.SampledFrom([]units.Rate{0, 8 * units.Mbps, 10 * units.Gbps}), 2, 2).Draw(t, "rates")
	now := units.Time(0)
	trace := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) arrival {
		now += units.Time(rapid.IntRange(0, 400).Draw(t, "gap")) * us
		return arrival{now, uint32(rapid.IntRange(1, 3).Draw(t, "port")), uint8(rapid.IntRange(0, len(weights)).Draw(t, "queue")), rapid.IntRange(1, 1600).Draw(t, "bytes")}
	}), 0, 120).Draw(t, "trace")
	slices.SortStableFunc(trace, func(a, b arrival) int { return int(a.at - b.at) })
	return c, rates, trace
}

// However late the caller drives the manager, packets leave at the same times and see the same
// depths at dequeue.
func TestLateDriverChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, rates, trace := draw(rt)
		late := rapid.SliceOfN(rapid.Bool(), len(trace), len(trace)).Draw(rt, "late")
		run := func(lateAt func(int) bool) (out [4][]engine.Packet) {
			m := newManager(t, c, rates...)
			collect := func(s []sent) {
				for _, s := range s {
					p := *s.p
					p.EnqDepth = 0 // a late driver lets packets find others that should have left
					out[p.EgressPort] = append(out[p.EgressPort], p)
				}
			}
			for i, a := range trace {
				if !lateAt(i) {
					collect(drain(m, a.at-1)) // what leaves at a.at may still be overtaken by it
				}
				m.Enqueue(packet(a.port, a.queue, a.bytes), 0, a.at)
			}
			collect(drain(m, units.MaxTime-1))
			return out
		}
		want := run(func(int) bool { return false })
		got := run(func(i int) bool { return late[i] })
		for port := range want {
			if !slices.EqualFunc(want[port], got[port], func(a, b engine.Packet) bool {
				return a.EnqTime == b.EnqTime && a.DeqTime == b.DeqTime && a.DeqDepth == b.DeqDepth && a.Queue == b.Queue && a.Bytes == b.Bytes
			}) {
				rt.Fatalf("port %d: on time\n%+v\nlate\n%+v", port, want[port], got[port])
			}
		}
	})
}

// Pass does what Enqueue and Dequeue do.
func TestPassIsEnqueueAndDequeue(t *testing.T) {
	all := 0
	rapid.Check(t, func(rt *rapid.T) {
		c, rates, trace := draw(rt)
		c.Schedule = rapid.SampledFrom([][]tm.Share{c.Schedule, tm.Strict(c.Queues)}).Draw(rt, "schedule")
		c.Limit.Bytes = units.Bytes(rapid.IntRange(1000, 4000).Draw(rt, "limit"))
		pauses := rapid.SliceOfN(rapid.IntRange(0, 9), len(trace), len(trace)).Draw(rt, "pauses")
		passed := 0
		run := func(pass bool) (out []engine.Packet, finish []units.Time, stats [2]tm.PortStats) {
			m := newManager(t, c, rates...)
			collect := func(s []sent) {
				for _, s := range s {
					out, finish = append(out, *s.p), append(finish, s.finish)
				}
			}
			for i, a := range trace {
				collect(drain(m, a.at))
				p := packet(a.port, a.queue, a.bytes)
				if pauses[i] == 0 && int(a.queue) < c.Queues && a.port <= 2 {
					if err := m.Pause(a.port, int(a.queue), a.at+100*us, a.at); err != nil {
						rt.Fatal(err)
					}
				}
				if pass {
					if m.TryBypass(p, a.at) {
						passed++
						collect([]sent{{p, a.at, m.OnTransmit(units.Bytes(a.bytes))}})
						m.Complete()
						continue
					}
				}
				m.Enqueue(p, 7, a.at)
				collect(drain(m, a.at))
			}
			collect(drain(m, units.MaxTime-1))
			for i := range stats {
				m.Stats(uint32(i+1), &stats[i])
			}
			return out, finish, stats
		}
		want, wantFinish, wantStats := run(false)
		got, gotFinish, gotStats := run(true)
		if !reflect.DeepEqual(want, got) || !slices.Equal(wantFinish, gotFinish) || !reflect.DeepEqual(wantStats, gotStats) {
			rt.Fatalf("queued\n%+v\n%v\n%+v\npassed\n%+v\n%v\n%+v", want, wantFinish, wantStats, got, gotFinish, gotStats)
		}
		all += passed
	})
	if all == 0 {
		t.Error("nothing passed")
	}
}

// Packets are neither lost nor made, limits hold, the wire is never shared by two frames,
// and never idle while a packet waits.
func TestConservationAndWorkConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, rates, trace := draw(rt)
		c.Limit = tm.Limit{
			Packets: rapid.IntRange(0, 5).Draw(rt, "packets"),
			Bytes:   units.Bytes(rapid.IntRange(1, 8000).Draw(rt, "bytes")),
		}
		m := newManager(t, c, rates...)
		refused := [4]int{}
		out := []sent{}
		check := func() {
			var st tm.PortStats
			for id := uint32(1); id <= 2; id++ {
				m.Stats(id, &st)
				for q, s := range st.Queues {
					if s.Enqueued.Packets != s.Dequeued.Packets+uint64(s.Packets) || s.Enqueued.Bytes != s.Dequeued.Bytes+s.Bytes {
						rt.Fatalf("port %d queue %d does not add up: %+v", id, q, s)
					}
					if l := c.Limit; l.Packets > 0 && s.MaxPackets > l.Packets || s.MaxBytes > l.Bytes {
						rt.Fatalf("port %d queue %d held %d packets, %v, beyond its limit of %+v", id, q, s.MaxPackets, s.MaxBytes, l)
					}
				}
			}
		}
		for _, a := range trace {
			out = append(out, drain(m, a.at)...)
			p := packet(a.port, a.queue, a.bytes)
			if !m.Enqueue(p, 0, a.at) {
				refused[a.port]++
			}
			check()
		}
		out = append(out, drain(m, units.MaxTime-1)...)
		check()
		if n := len(out) + refused[1] + refused[2] + refused[3]; n != len(trace) {
			rt.Fatalf("%d packets came, %d left or were refused", len(trace), n)
		}
		finish := [4]units.Time{}
		for _, s := range out {
			id := s.p.EgressPort
			if s.at < finish[id] || s.at < s.p.EnqTime {
				rt.Fatalf("port %d: a packet of %v left at %v, but the wire was busy until %v", id, s.p.EnqTime, s.at, finish[id])
			}
			if want := max(finish[id], s.p.EnqTime); s.at != want && s.at > finish[id] {
				// It waited on an idle wire: only for a packet that came meanwhile, so none.
				rt.Fatalf("port %d: a packet left at %v, want %v", id, s.at, want)
			}
			finish[id] = s.finish
		}
	})
}

// A packet never leaves while one of a higher strict queue waits.
func TestStrictOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		_, _, trace := draw(rt)
		m := newManager(t, tm.Config{Queues: 8, Limit: tm.Limit{Packets: 1 << 20}}, 8*units.Mbps)
		for _, a := range trace {
			m.Enqueue(packet(1, a.queue%8, a.bytes), 0, a.at)
		}
		out := drain(m, units.MaxTime-1)
		for i, s := range out {
			for _, later := range out[i+1:] {
				if later.p.Queue > s.p.Queue && later.p.EnqTime <= s.at {
					rt.Fatalf("queue %d sent at %v while queue %d had a packet of %v", s.p.Queue, s.at, later.p.Queue, later.p.EnqTime)
				}
				if later.p.Queue == s.p.Queue && later.p.EnqTime < s.p.EnqTime {
					rt.Fatalf("queue %d reordered packets", s.p.Queue)
				}
			}
		}
	})
}

// Queues that are always full share the wire in proportion to their quanta. DWRR is off by
// at most a quantum and a frame at any time.
func TestDWRRShares(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 8), 2, 8).Draw(rt, "weights")
		sizes := rapid.SliceOfN(rapid.IntRange(64, 1518), len(weights), len(weights)).Draw(rt, "sizes")
		grow := rapid.SliceOfN(rapid.IntRange(-60, 500), len(weights), len(weights)).Draw(rt, "growth in egress")
		m := newManager(t, tm.Config{Queues: len(weights), Schedule: tm.Weighted(weights)}, units.Gbps)
		for q, n := range sizes {
			for range 4 {
				m.Enqueue(packet(1, uint8(q), n), 0, 0)
			}
		}
		got := make([]float64, len(weights))
		total := 0.0
		for total < 5e5 {
			d, _ := m.Dequeue(units.MaxTime - 1)
			q := d.Packet.Queue
			n := sizes[q] + grow[q]
			m.OnTransmit(units.Bytes(n))
			m.Enqueue(d.Packet, 0, 0) // always full
			m.Complete()
			got[q] += float64(n)
			total += float64(n)
		}
		round := 0.0
		for _, w := range weights {
			round += float64(w) * float64(tm.DefaultQuantum)
		}
		for q, w := range weights {
			want := total * float64(w) * float64(tm.DefaultQuantum) / round
			if diff := got[q] - want; diff > 2*round || diff < -2*round {
				rt.Fatalf("queue %d of weights %v sent %.0f bytes of %.0f, want %.0f", q, weights, got[q], total, want)
			}
		}
	})
}
