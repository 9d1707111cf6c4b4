package softswitch

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/engine/hash"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// frames collects the reports of the frames sent.
type frames struct{ got []report }

func (f *frames) Send(frame []byte, _ units.Time) { f.got = append(f.got, decode(frame)) }

// TestArrivalsAcrossSwap: frames that passed ingress before the pipeline was replaced leave
// through the egress of the old pipeline, in order. The old pipeline is forgotten afterwards.
func TestArrivalsAcrossSwap(t *testing.T) {
	m, err := tm.New(tm.Config{Queues: 8})
	if err != nil {
		t.Fatal(err)
	}
	out := &frames{}
	c := &dataplane{tm: m, old: map[uint32]*pipeline{}}
	for n := uint32(1); n <= 2; n++ {
		if err := m.AddPort(n, 0); err != nil {
			t.Fatal(err)
		}
		c.ports[n] = &portState{out: out, up: true, info: PortStats{Port: n}}
	}
	a, b := &rxBatch{}, port.NewBatch(96, 64<<10)
	b.Add(7, frame(2, 0, 9, 64)) // no such port
	for seq := range uint32(3) {
		b.Add(1, frame(2, 0, seq, 64))
	}
	a.fill(b)
	if a.ingressAhead(c, 0); a.pipeline != nil {
		t.Error("a batch went through ingress without a pipeline")
	}
	c.install(echo(t, 8).Instance)
	a.ingressAhead(c, 1*us)
	c.install(echo(t, 8).Instance)
	if c.receiveBatch(a, 5*us) {
		t.Error("a turn did not suffice")
	}
	if len(out.got) != 3 {
		t.Fatalf("%d frames left, want 3", len(out.got))
	}
	for i, r := range out.got {
		if r.seq != uint32(i) || r.port != 2 {
			t.Errorf("frame %d: %+v, want sequence number %d on port 2", i, r, i)
		}
	}
	if len(c.old) != 0 || c.running.Load().packets != 0 {
		t.Errorf("%d old pipelines, %d packets left, want none", len(c.old), c.running.Load().packets)
	}
	if got := c.ports[1].info.RxFrames; got != 3 || c.stats.UnknownPort != 1 {
		t.Errorf("%d frames in, %d on unknown ports, want 3 and 1", got, c.stats.UnknownPort)
	}
	a.reset()
}

// TestArrivalsWaitForWhatIsDue: after the machine stalled, packets that should have left do not
// count against the queues' limits when a batch arrives, even if sending them takes more than one
// round.
func TestArrivalsWaitForWhatIsDue(t *testing.T) {
	const ports, limit, more = 16, 200, 90
	s, p := onLoop(t, clock.NewLoop(), "a", ports, 8*units.Mbps) // a byte lasts 1 us
	s.dataplane.install(echo(t, 8).Instance)
	for _, x := range p[1:] {
		x.SetUp(true)
		if err := s.SetQueueLimit(x.Number(), AllQueues, tm.Limit{Packets: limit}); err != nil {
			t.Fatal(err)
		}
		for i := range limit {
			s.dataplane.receive(1, frame(uint8(x.Number()), 0, uint32(i), 60), 0)
		}
	}
	a, b := &rxBatch{}, port.NewBatch(96, 64<<10)
	for i := range more {
		b.Add(1, frame(1, 0, uint32(i), 60))
	}
	a.fill(b)
	turns := 1
	for s.dataplane.receiveBatch(a, units.Second) {
		turns++
	}
	for _, st := range s.PortStats() {
		if n := st.Queues.Dropped().Packets; n > 0 {
			t.Errorf("port %d dropped %d packets", st.Port, n)
		}
	}
	if want := ports*limit/roundPackets + 1; turns < want || turns > want+1 {
		t.Errorf("%d turns, want %d", turns, want)
	}
}

// TestOrderedPrograms: only programs whose ingress and egress share registers are ordered.
func TestOrderedPrograms(t *testing.T) {
	own, err := engine.Load(p4src.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		prog *engine.Program
		want bool
	}{{"echo", echo(t, 8).Program, false}, {"loops", loops(t).Program, true}, {"headgate", own, true}} {
		if got := tt.prog.SharesRegisters(); got != tt.want {
			t.Errorf("%s: ingress and egress share registers: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// sums collects the checksums of the frames sent.
type sums struct{ got []uint32 }

func (s *sums) Send(frame []byte, _ units.Time) { s.got = append(s.got, crc32.ChecksumIEEE(frame)) }

// TestLookAhead: frames that look ahead into a large table in a batch leave as they do one by one, also if a
// round ends among those that looked ahead together.
func TestLookAhead(t *testing.T) {
	const routes, each = 1 << 14, 50
	in := instance(t, "engine/testdata/l3.json", 1).Instance
	add := func(table, action string, key engine.Match, args ...[]byte) {
		if _, err := in.AddEntry(table, []engine.Match{key}, 0, engine.Target{Call: &engine.ActionCall{Name: action, Args: args}}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range routes {
		add("I.routes", "I.set_next_hop", engine.Match{Value: []byte{11, byte(i >> 8), byte(i), 0}, Prefix: 24}, []byte{0, byte(i & 1)})
	}
	for i := range byte(2) {
		add("I.next_hops", "I.forward", engine.Match{Value: []byte{0, i}}, []byte{0, 1 + i}, []byte{2, 0, 0, 0, 0, i}, []byte{2, 1, 0, 0, 0, i})
	}
	start := func() (*dataplane, *sums) {
		m, err := tm.New(tm.Config{Queues: 1})
		if err != nil {
			t.Fatal(err)
		}
		out := &sums{}
		c := &dataplane{tm: m, old: map[uint32]*pipeline{}}
		for n := uint32(1); n <= 2; n++ {
			if err := m.AddPort(n, 0); err != nil {
				t.Fatal(err)
			}
			c.ports[n] = &portState{out: out, up: true, info: PortStats{Port: n}}
		}
		c.install(in)
		return c, out
	}
	one, want := start()
	a, b := &rxBatch{}, port.NewBatch(each+1, 64<<10)
	for i := range each {
		f := make([]byte, 64)
		copy(f[12:], []byte{8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, byte(11 + i%7/6), byte(i), byte(i * 5), 9})
		binary.BigEndian.PutUint16(f[24:], uint16(hash.Internet(f[14:34])))
		one.receive(1, f, 0)
		b.Add(1, f)
		if i == 20 {
			b.Add(7, f) // no such port
		}
	}
	many, got := start()
	a.fill(b)
	a.worker.BeginIngress(in, 1)
	if !a.worker.LooksAhead() {
		t.Fatal("no packet looks ahead")
	}
	a.receive(many, 0, 0)
	a.forget()
	a.worker.End()
	if many.receiveBatch(a, 0) {
		t.Error("a round did not suffice")
	}
	if len(want.got) < each/2 || len(want.got) == each || !slices.Equal(got.got, want.got) {
		t.Errorf("%d frames left, one by one %d of %d, or they differ", len(got.got), len(want.got), each)
	}
	a.reset()
	a.fill(b)
	a.ingressAhead(many, 0)
	if got.got = nil; many.receiveBatch(a, 0) || !slices.Equal(got.got, want.got) {
		t.Errorf("%d frames left after ingress ahead, one by one %d, or they differ", len(got.got), len(want.got))
	}
}
