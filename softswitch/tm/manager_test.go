package tm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func newManager(t testing.TB, c tm.Config, rates ...units.Rate) *tm.Manager {
	t.Helper()
	m, err := tm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rates {
		if err := m.AddPort(uint32(i+1), r); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func packet(port uint32, queue uint8, n int) *engine.Packet {
	return &engine.Packet{EgressPort: port, Queue: queue, Bytes: n}
}

// sent is a departure as a driver without egress pipeline sees it.
type sent struct {
	p          *engine.Packet
	at, finish units.Time
}

// drain dequeues all that leaves by now.
func drain(m *tm.Manager, now units.Time) (out []sent) {
	for d, ok := m.Dequeue(now); ok; d, ok = m.Dequeue(now) {
		out = append(out, sent{d.Packet, d.At, m.OnTransmit(units.Bytes(d.Packet.Bytes))})
		m.Complete()
	}
	return out
}

func TestRatedPortSpacesFrames(t *testing.T) {
	m := newManager(t, tm.Config{}, 8*units.Mbps) // a byte lasts 1 us
	for range 3 {
		m.Enqueue(packet(1, 0, 100), 0, 10*us)
	}
	if at, ok := m.Next(); !ok || at != 10*us {
		t.Errorf("next departure at %v, %v, want 10us", at, ok)
	}
	if got := drain(m, 9*us); got != nil {
		t.Errorf("%d packets left before they came", len(got))
	}
	got := drain(m, units.Second) // late, yet with the right times
	for i, want := range []units.Time{10 * us, 110 * us, 210 * us} {
		s := got[i]
		if s.at != want || s.finish != want+100*us || s.p.DeqTime != want || s.p.EnqTime != 10*us {
			t.Errorf("packet %d left at %v to %v, dequeued at %v, enqueued at %v; want %v to %v", i, s.at, s.finish, s.p.DeqTime, s.p.EnqTime, want, want+100*us)
		}
		if s.p.EnqDepth != uint32(i) || s.p.DeqDepth != uint32(2-i) {
			t.Errorf("packet %d saw depths %d and %d, want %d and %d", i, s.p.EnqDepth, s.p.DeqDepth, i, 2-i)
		}
	}
	if _, ok := m.Next(); ok {
		t.Error("an empty manager has a next departure")
	}
	m.Enqueue(packet(1, 0, 50), 0, 290*us) // while the last one is on the wire
	if s := drain(m, units.Second)[0]; s.at != 310*us {
		t.Errorf("left at %v, want 310us", s.at)
	}
	m.Enqueue(packet(1, 0, 50), 0, 800*us) // after an idle time
	if s := drain(m, units.Second)[0]; s.at != 800*us {
		t.Errorf("left at %v, want 800us", s.at)
	}
}

func TestWireTimeIsThatOfTheFrameAsSent(t *testing.T) {
	m := newManager(t, tm.Config{Overhead: 20}, 8*units.Mbps)
	for range 4 {
		m.Enqueue(packet(1, 0, 100), 0, 0)
	}
	var at []units.Time
	for _, frames := range [][]units.Bytes{{104}, {}, {60, 40}, {100}} { // grown, dropped, two, as it was
		d, ok := m.Dequeue(units.Second)
		if !ok {
			t.Fatal("no packet")
		}
		at = append(at, d.At)
		for _, n := range frames {
			m.OnTransmit(n)
		}
		m.Complete()
	}
	if want := []units.Time{0, 124 * us, 124 * us, 264 * us}; !slices.Equal(at, want) {
		t.Errorf("left at %v, want %v", at, want)
	}
	var st tm.PortStats
	m.Stats(1, &st)
	if st.Sent != (tm.Counter{Packets: 4, Bytes: 304}) {
		t.Errorf("sent %+v, want 4 frames and 304 bytes", st.Sent)
	}
}

func TestUnlimitedAndUnknownPorts(t *testing.T) {
	m := newManager(t, tm.Config{}, 0)
	m.Enqueue(packet(1, 0, 1500), 7, 5*us)
	m.Enqueue(packet(99, 0, 1500), 8, 5*us)
	for _, want := range []tm.Dequeued{{Port: 1, Known: true, Epoch: 7}, {Port: 0, Epoch: 8}} {
		d, ok := m.Dequeue(5 * us)
		if !ok || d.Port != want.Port || d.Known != want.Known || d.Epoch != want.Epoch || d.At != 5*us {
			t.Errorf("departure %+v, %v, want %+v", d, ok, want)
		}
		if finish := m.OnTransmit(1500); finish != 5*us {
			t.Errorf("finished at %v, want at once", finish)
		}
		m.Complete()
	}
	var st tm.PortStats
	if m.Rest(&st); st.Sent.Packets != 1 {
		t.Errorf("%d packets to unknown ports, want 1", st.Sent.Packets)
	}
	if m.Stats(99, &st) {
		t.Error("port 99 exists")
	}
}

func TestLimitsDropAtTheTail(t *testing.T) {
	m := newManager(t, tm.Config{Queues: 2, Limit: tm.Limit{Packets: 3}}, units.Kbps)
	if err := m.SetLimit(1, 1, tm.Limit{Bytes: 1000}); err != nil {
		t.Fatal(err)
	}
	took := func(q uint8, n int) bool { return m.Enqueue(packet(1, q, n), 0, 0) }
	for i, want := range []bool{true, true, true, false} {
		if took(0, 60) != want {
			t.Errorf("packet %d of the packet-limited queue: taken = %v", i, !want)
		}
	}
	for _, n := range []struct {
		bytes int
		want  bool
	}{{600, true}, {401, false}, {400, true}, {1, false}} {
		if took(1, n.bytes) != n.want {
			t.Errorf("%d bytes into the byte-limited queue: taken = %v", n.bytes, !n.want)
		}
	}
	if took(2, 60) {
		t.Error("a queue that does not exist took a packet")
	}
	var st tm.PortStats
	m.Stats(1, &st)
	if d := st.Dropped(); d != (tm.Counter{Packets: 3, Bytes: 462}) {
		t.Errorf("dropped %+v, want 3 packets of 462 bytes", d)
	}
	if q := st.Queues[1]; q.Packets != 2 || q.Bytes != 1000 || q.MaxBytes != 1000 {
		t.Errorf("queue 1 holds %+v, want 2 packets of 1000 bytes", q)
	}
	drain(m, 0) // frees a place
	if !took(1, 600) || took(0, 60) {
		t.Error("the higher queue did not send first, or its place was not freed")
	}
}

func TestSetRate(t *testing.T) {
	m := newManager(t, tm.Config{}, 8*units.Mbps)
	m.Enqueue(packet(1, 0, 100), 0, 0)
	m.Enqueue(packet(1, 0, 100), 0, 0)
	drain(m, 0)
	// 40 of 100 us have passed; the other 60 bytes go at half the rate.
	if err := m.SetRate(1, 4*units.Mbps, 40*us); err != nil {
		t.Fatal(err)
	}
	if at, _ := m.Next(); at != 160*us {
		t.Errorf("next at %v, want 160us", at)
	}
	if err := m.SetRate(1, 0, 50*us); err != nil {
		t.Fatal(err)
	}
	if at, _ := m.Next(); at != 50*us {
		t.Errorf("next at %v, want at once", at)
	}
}

func TestErrors(t *testing.T) {
	m := newManager(t, tm.Config{Queues: 8}, 0)
	newErr := func(c tm.Config) error { _, err := tm.New(c); return err }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{newErr(tm.Config{Queues: 33}), "number of queues 33: want 1 to 32"},
		{newErr(tm.Config{Queues: -1}), "number of queues -1: want 1 to 32"},
		{newErr(tm.Config{Limit: tm.Limit{Packets: -1}}), "queue limit of -1 packets: want 0"},
		{newErr(tm.Config{Overhead: 65}), "overhead of 65 bytes a frame: want 0 to 64"},
		{newErr(tm.Config{Queues: 2, Schedule: tm.Strict(3)}), "schedule for 3 queues: want one share for each of the 2 queues"},
		{newErr(tm.Config{Schedule: []tm.Share{{Quantum: 10}}}), "quantum of queue 0 is 10B: want 64B to 1GB"},
		{m.AddPort(1, 0), "port 1 exists already"},
		{m.AddPort(2, -5), "port 2: rate -5 bps: want 0 (unlimited) or more"},
		{m.SetRate(3, 0, 0), "port 3 does not exist: want one of [1]"},
		{m.SetRate(1, -1, 0), "port 1: rate -1 bps"},
		{m.SetLimit(1, 8, tm.Limit{}), "port 1 has no queue 8: want 0 to 7"},
		{m.SetLimit(1, 0, tm.Limit{Bytes: -1}), "port 1, queue 0: queue limit of -1 bytes"},
		{m.SetLimit(4, 0, tm.Limit{}), "port 4 does not exist"},
	} {
		if tt.err == nil || !strings.HasPrefix(tt.err.Error(), tt.want) {
			t.Errorf("error %v, want %q", tt.err, tt.want)
		}
	}
}

func TestZeroAllocations(t *testing.T) {
	m := newManager(t, tm.Config{Queues: 8}, units.Gbps, 0)
	pkts := make([]*engine.Packet, 32)
	for i := range pkts {
		pkts[i] = packet(uint32(1+i%2), uint8(i%8), 1000)
	}
	now := units.Time(0)
	round := func() {
		for _, p := range pkts {
			m.Enqueue(p, 0, now)
		}
		now += units.Millisecond
		for d, ok := m.Dequeue(now); ok; d, ok = m.Dequeue(now) {
			m.OnTransmit(units.Bytes(d.Packet.Bytes))
			m.Complete()
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round, want none", n)
	}
}

func BenchmarkManager(b *testing.B) {
	for _, bench := range []struct {
		name     string
		rate     units.Rate
		schedule []tm.Share
	}{
		{"unlimited", 0, nil},
		{"strict", units.Gbps, nil},
		{"dwrr", units.Gbps, tm.Weighted([]int{1, 2, 3, 4, 5, 6, 7, 0})},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			m := newManager(b, tm.Config{Queues: 8, Schedule: bench.schedule}, slices.Repeat([]units.Rate{bench.rate}, 16)...)
			pkts := make([]*engine.Packet, 512)
			for i := range pkts {
				pkts[i] = packet(uint32(1+i%16), uint8(i/16%8), 1000)
			}
			now := units.Time(0)
			for i := 0; b.Loop(); i++ {
				p := pkts[i%len(pkts)]
				now += units.Gbps.TxTime(1000) / 16
				m.Enqueue(p, 0, now)
				if i < 200 { // keep a dozen packets a port
					continue
				}
				if d, ok := m.Dequeue(units.MaxTime - 1); ok {
					m.OnTransmit(units.Bytes(d.Packet.Bytes))
					m.Complete()
				}
			}
		})
	}
}

// TestSetSchedule: queues with weights share what strict queues leave, from the next packet on, at existing and
// future ports.
func TestSetSchedule(t *testing.T) {
	m := newManager(t, tm.Config{Queues: 3, Limit: tm.Limit{Packets: 1000}}, 8*units.Mbps) // a byte lasts 1 us
	fill := func(port uint32) {
		for q := range uint8(3) {
			for range 400 {
				m.Enqueue(packet(port, q, 1000), 0, 0)
			}
		}
	}
	share := func(frames int) (of [3]int) {
		for range frames {
			d, ok := m.Dequeue(units.MaxTime)
			if !ok {
				t.Fatal("nothing to send")
			}
			m.OnTransmit(1000)
			m.Complete()
			of[d.Packet.Queue]++
		}
		return of
	}
	fill(1)
	if got := share(100); got != [3]int{0, 0, 100} {
		t.Errorf("%v frames of each queue by strict priority", got)
	}
	if err := m.SetSchedule(tm.Weighted([]int{3, 1, 0})); err != nil {
		t.Fatal(err)
	}
	if got := share(300); got != [3]int{0, 0, 300} {
		t.Errorf("%v frames of each queue, want the strict one's first", got)
	}
	if got := share(400); got[0] < 295 || got[0] > 305 || got[2] != 0 {
		t.Errorf("%v frames of each queue, want 300 and 100 by weights of 3 and 1", got)
	}
	if err := m.SetSchedule(nil); err != nil {
		t.Fatal(err)
	}
	if got := share(200); got[1] != 200 {
		t.Errorf("%v frames of each queue, want strict priority as at first", got)
	}
	if err := m.SetSchedule(tm.Weighted([]int{1})); err == nil {
		t.Error("a schedule of one queue for three was taken")
	}
	share(200)
	if err := m.SetSchedule(tm.Weighted([]int{1, 1, 1})); err != nil {
		t.Fatal(err)
	}
	if err := m.AddPort(2, 8*units.Mbps); err != nil {
		t.Fatal(err)
	}
	fill(2)
	if got := share(300); got[0] < 98 || got[1] < 98 || got[2] < 98 {
		t.Errorf("%v frames of each queue of a new port, want 100 each", got)
	}
}
