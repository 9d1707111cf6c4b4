package softswitch

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTwoHopsTakeTheirTime(t *testing.T) {
	loop := clock.NewLoop()
	_, a := onLoop(t, loop, "a", 2, 8*units.Mbps) // a byte lasts 1 us
	_, b := onLoop(t, loop, "b", 2, 8*units.Mbps)
	h1, h2 := &host{loop: loop}, &host{loop: loop}
	connect(t, loop, 10*us, h1, a[1])
	connect(t, loop, 20*us, a[2], b[1])
	connect(t, loop, 30*us, b[2], h2)
	if !h1.up || !h2.up {
		t.Error("a host was not told that its cable works")
	}
	for i := range uint32(3) {
		h1.send(100*us, frame(2, 0, i, 100)) // at once: an infinitely fast host
	}
	loop.RunUntil(ms)
	// 10 us to a, 100 us a frame there, 20 us to b, 100 us there, 30 us on.
	for i, got := range h2.got {
		if want := (360 + 100*units.Time(i)) * us; got.at != want || got.seq != uint32(i) || got.length != 100 {
			t.Errorf("frame %d arrived at %v, %d bytes, want frame %d at %v", got.seq, got.at, got.length, i, want)
		}
		// The last hop has no queue: frames come as fast as they leave.
		if got.enq != uint32(230+100*i) || got.delta != 0 || got.enqDepth != 0 || got.ingress != 1 {
			t.Errorf("frame %d at the last hop: %+v", i, got.report)
		}
	}
	if len(h2.got) != 3 {
		t.Errorf("%d frames arrived, want 3", len(h2.got))
	}
}

func TestQueueMetadataLimitsAndStats(t *testing.T) {
	loop := clock.NewLoop()
	s, p := onLoop(t, loop, "a", 2, 8*units.Mbps)
	if err := s.SetQueueLimit(2, 3, tm.Limit{Packets: 4}); err != nil {
		t.Fatal(err)
	}
	h1, h2 := &host{loop: loop}, &host{loop: loop}
	connect(t, loop, 0, h1, p[1])
	connect(t, loop, 0, h2, p[2])
	for i := range uint32(8) {
		h1.send(units.Time(i)*us, frame(2, 3, i, 100)) // one leaves at once, four wait
	}
	h1.send(50*us, frame(2, 7, 99, 100)) // overtakes them
	loop.RunUntil(10 * ms)
	want := []arrived{}
	for i, w := range []struct {
		seq             uint32
		enq, out        uint32
		before, after   uint16
		queue, position uint8
	}{
		{0, 0, 0, 0, 0, 3, 0}, {99, 50, 100, 0, 0, 7, 0}, {1, 1, 200, 0, 3, 3, 0},
		{2, 2, 300, 1, 2, 3, 0}, {3, 3, 400, 2, 1, 3, 0}, {4, 4, 500, 3, 0, 3, 0},
	} {
		want = append(want, arrived{units.Time(w.out+100) * us, report{
			port: 2, queue: w.queue, enq: w.enq, delta: w.out - w.enq, enqDepth: w.before, deqDepth: w.after, ingress: 1, seq: w.seq, length: 100}})
		if i < len(h2.got) && h2.got[i] != want[i] {
			t.Errorf("frame %d\n got %+v\nwant %+v", i, h2.got[i], want[i])
		}
	}
	if len(h2.got) != len(want) {
		t.Errorf("%d frames arrived, want %d", len(h2.got), len(want))
	}
	in, out := stats(t, s, 1), stats(t, s, 2)
	if in.RxFrames != 9 || in.RxBytes != 900 || out.TxFrames != 6 || out.TxBytes != 600 || !out.Up {
		t.Errorf("counters %+v\n%+v", in, out)
	}
	if d := out.Queues.Dropped(); d.Packets != 3 || out.Queues.Queues[3].MaxPackets != 4 {
		t.Errorf("dropped %+v of queue %+v", d, out.Queues.Queues[3])
	}
}

func TestSetPortRateWakesThePort(t *testing.T) {
	loop := clock.NewLoop()
	s, p := onLoop(t, loop, "a", 2, 8*units.Kbps) // a byte lasts 1 ms
	h := &host{loop: loop}
	connect(t, loop, 0, h, p[1])
	for i := range uint32(3) {
		h.send(0, frame(1, 0, i, 100))
	}
	loop.RunUntil(50 * ms) // half of the first
	if err := s.SetPortRate(1, 80*units.Kbps); err != nil {
		t.Fatal(err)
	}
	loop.RunUntil(units.Second)
	// The first frame's end was settled when it left; the others follow at the new rate.
	// It delays them: a link keeps the order.
	want := []units.Time{100 * ms, 100 * ms, 100 * ms}
	got := []units.Time{}
	for _, a := range h.got {
		got = append(got, a.at)
	}
	if !slices.Equal(got, want) {
		t.Errorf("frames arrived at %v, want %v", got, want)
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{s.SetPortRate(9, 0), "port 9 does not exist: want one of [1 2 510]"},
		{s.SetQueueLimit(9, AllQueues, tm.Limit{}), "port 9 does not exist"},
		{s.SetQueueLimit(1, 8, tm.Limit{}), "port 1 has no queue 8"},
		{s.SetQueueLimit(1, AllQueues, tm.Limit{Packets: 7}), ""},
	} {
		if (tt.err == nil) != (tt.want == "") || tt.err != nil && !strings.HasPrefix(tt.err.Error(), tt.want) {
			t.Errorf("error %v, want %q", tt.err, tt.want)
		}
	}
	if l := stats(t, s, 1).Queues.Queues[7].Limit; l.Packets != 7 {
		t.Errorf("limit of queue 7 is %+v", l)
	}
}

func TestPacketIO(t *testing.T) {
	loop := clock.NewLoop()
	s, p := onLoop(t, loop, "a", 1, 0)
	c := s.fakeControl()
	h := &host{loop: loop}
	connect(t, loop, us, h, p[1])
	out := frame(1, 0, 7, 60)
	s.PacketOut(out)
	out[5] = 99                        // the switch has a copy
	h.send(5*us, frame(254, 2, 8, 60)) // to the CPU port
	h.send(6*us, frame(0, 0, 9, 60))   // dropped
	h.send(7*us, frame(77, 0, 9, 60))  // to a port that is not there
	h.send(8*us, frame(1, 0, 10, 60))  // back
	loop.RunUntil(ms)
	if len(h.got) != 2 || h.got[0].seq != 7 || h.got[0].ingress != cpuPort || h.got[1].seq != 10 {
		t.Errorf("the host received %+v", h.got)
	}
	if len(c.packetIns) != 1 || c.packetIns[0].seq != 8 || c.packetIns[0].ingress != 1 {
		t.Errorf("packet-ins %+v", c.packetIns)
	}
	if st := s.Stats(); st.UnknownPort != 1 {
		t.Errorf("stats %+v, want one frame to an unknown port", st)
	}
}

func TestRecirculation(t *testing.T) {
	loop := clock.NewLoop()
	s, p := onLoop(t, loop, "a", 1, 0)
	h := &host{loop: loop}
	connect(t, loop, 0, h, p[1])
	h.send(us, frame(255, 0, 3, 60))
	for range recirculationLimit + 5 {
		h.send(10*us, frame(255, 0, 4, 60))
	}
	loop.RunUntil(ms)
	if a := h.got[0]; a.seq != 3 || a.rounds != 1 || a.at != us+recirculationDelay {
		t.Errorf("received %+v, want it %v later after one round", a, recirculationDelay)
	}
	if st := s.Stats(); st.Recirculated != recirculationLimit+1 || st.RecirculationsDropped != 5 || len(h.got) != recirculationLimit+1 {
		t.Errorf("%d arrived, stats %+v", len(h.got), st)
	}
}

func TestSwapKeepsQueuedPackets(t *testing.T) {
	loop := clock.NewLoop()
	s, p := onLoop(t, loop, "a", 1, 8*units.Mbps)
	h := &host{loop: loop}
	connect(t, loop, 0, h, p[1])
	for i := range uint32(3) {
		h.send(units.Time(i), frame(1, 0, i, 100))
	}
	h.send(2, frame(255, 0, 3, 100)) // on its way back to ingress when the pipeline changes
	loop.RunUntil(50 * us)
	s.Commit(echo(t, 8))
	h.send(60*us, frame(1, 0, 4, 100))
	loop.RunUntil(55 * us)
	if len(s.dataplane.old) != 1 {
		t.Errorf("%d old pipelines, want one with packets", len(s.dataplane.old))
	}
	loop.RunUntil(10 * ms)
	seqs := []uint32{}
	for _, a := range h.got {
		seqs = append(seqs, a.seq)
	}
	if !slices.Equal(seqs, []uint32{0, 1, 2, 4, 3}) {
		t.Errorf("received %v", seqs)
	}
	if len(s.dataplane.old) != 0 || s.Stats().Pipelines != 2 {
		t.Errorf("%d old pipelines left of %d", len(s.dataplane.old), s.Stats().Pipelines)
	}
}

func TestNoPipelineNoCable(t *testing.T) {
	loop := clock.NewLoop()
	s, err := NewOnLoop(loop, config("a"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.AddPort(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Receive(frame(1, 0, 0, 60), 0)
	if st := s.Stats(); st.NoPipeline != 1 {
		t.Errorf("stats %+v, want a frame without pipeline", st)
	}
	s.Commit(echo(t, 8))
	loop.RunUntil(us)
	p.Receive(frame(1, 0, 0, 60), loop.Now())
	if st := stats(t, s, 1); st.TxLost != 1 || st.Up {
		t.Errorf("port %+v, want a frame lost without a cable", st)
	}
}

func TestLinkCut(t *testing.T) {
	loop := clock.NewLoop()
	s, p := onLoop(t, loop, "a", 2, 0)
	h1, h2 := &host{loop: loop}, &host{loop: loop}
	connect(t, loop, 0, h1, p[1])
	l2 := connect(t, loop, 100*us, h2, p[2])
	for i := range uint32(6) {
		h1.send(units.Time(i)*50*us, frame(2, 0, i, 60)) // 0 to 250 us
	}
	loop.Schedule(125*us, func() { l2.SetUp(false) }) // 1 and 2 are under way
	loop.Schedule(225*us, func() { l2.SetUp(true) })
	loop.RunUntil(ms)
	if len(h2.got) != 2 || h2.got[0].seq != 0 || h2.got[1].seq != 5 || !h2.up {
		t.Errorf("received %+v, want frames 0 and 5", h2.got)
	}
	if st := l2.Stats(); st[1] != (LinkStats{Frames: 2, Bytes: 120, Lost: 2}) || st[0] != (LinkStats{}) {
		t.Errorf("link counted %+v", st)
	}
	if st := stats(t, s, 2); st.TxFrames != 4 || st.TxLost != 2 {
		t.Errorf("port counted %+v", st)
	}
	if _, err := Connect(loop, -1, h1, h2); err == nil || err.Error() != "link delay -1ps: want 0 or more" {
		t.Errorf("negative delay: %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	loop := clock.NewLoop()
	s, err := NewOnLoop(loop, config("a"))
	if err != nil {
		t.Fatal(err)
	}
	try := func(change func(*Config)) error {
		c := config("x")
		change(&c)
		_, err := NewOnLoop(loop, c)
		return err
	}
	add := func(n uint32) error { _, err := s.AddPort(n, 0); return err }
	noCPU := func(n uint32) error {
		c := config("y")
		c.CPUPort = 0
		s, err := NewOnLoop(loop, c)
		if err == nil {
			_, err = s.AddPort(n, 0)
		}
		return err
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{try(func(c *Config) { c.CPUPort = 512 }), "switch x: CPU port 512: want 1 to 511, or 0 for none"},
		{noCPU(0), ""}, // without a CPU port, port 0 is an ordinary port
		{try(func(c *Config) { c.CPUPort = 511 }), "switch x: CPU port 511 is the drop port: give one of them another number"},
		{try(func(c *Config) { c.Traffic.Queues = 99 }), "switch x: number of queues 99: want 1 to 32"},
		{add(512), "switch a: port 512: want 0 to 511"},
		{add(cpuPort), "switch a: port 510 is the CPU port: give the port another number"},
		{add(1), ""},
		{add(1), "switch a: port 1 exists already"},
	} {
		if (tt.err == nil) != (tt.want == "") || tt.err != nil && tt.err.Error() != tt.want {
			t.Errorf("error %v, want %q", tt.err, tt.want)
		}
	}
}

// Two runs of the same events give the same frames at the same times.
func TestRunsAreRepeatable(t *testing.T) {
	run := func() []arrived {
		loop := clock.NewLoop()
		_, p := onLoop(t, loop, "a", 4, 100*units.Mbps)
		h := [4]*host{}
		for i := range h {
			h[i] = &host{loop: loop}
			connect(t, loop, units.Time(i)*us, h[i], p[i+1])
		}
		rnd := uint32(1)
		for i := range uint32(500) {
			rnd = rnd*1664525 + 1013904223
			h[i%3].send(units.Time(rnd>>20)*us, frame(4, uint8(rnd>>8)%8, i, 60+int(rnd>>22)))
		}
		loop.RunUntil(100 * ms)
		return h[3].got
	}
	first := run()
	if len(first) == 0 || !slices.Equal(first, run()) {
		t.Error("two runs differ")
	}
}

func TestNoAllocationPerPacket(t *testing.T) {
	if race.Enabled {
		t.Skip("skipped: the race detector makes sync.Pool allocate")
	}
	loop := clock.NewLoop()
	_, a := onLoop(t, loop, "a", 2, units.Gbps)
	_, b := onLoop(t, loop, "b", 2, units.Gbps)
	h1, h2 := &host{loop: loop}, &host{loop: loop}
	connect(t, loop, us, h1, a[1])
	connect(t, loop, us, a[2], b[1])
	connect(t, loop, us, b[2], h2)
	h2.got = make([]arrived, 0, 1<<20)
	f := frame(2, 0, 0, 1000)
	round := func() {
		for range 20 {
			h1.out.Send(f, loop.Now())
		}
		loop.RunUntil(loop.Now() + ms)
	}
	for range 200 {
		round() // past the first sweep, with all rings and pools at their size
	}
	if n := testing.AllocsPerRun(90, round); n > 0.5 {
		t.Errorf("%v allocations for 20 packets over two switches, want none", n)
	}
}

// BenchmarkHop is the cost of a packet through a switch and a link.
func BenchmarkHop(b *testing.B) {
	for _, rate := range []units.Rate{0, units.Gbps} {
		b.Run("rate="+rate.String(), func(b *testing.B) {
			loop := clock.NewLoop()
			_, p := onLoop(b, loop, "a", 2, rate)
			h1, h2 := &host{loop: loop}, &host{loop: loop}
			connect(b, loop, us, h1, p[1])
			connect(b, loop, us, p[2], h2)
			f := frame(2, 0, 0, 1000)
			b.ReportAllocs()
			for b.Loop() {
				h1.out.Send(f, loop.Now())
				loop.RunUntil(loop.Now() + units.Gbps.TxTime(1000))
				h2.got = h2.got[:0]
			}
		})
	}
}
