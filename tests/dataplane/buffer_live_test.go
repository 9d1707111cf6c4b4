package dataplane

import (
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

// TestBufferPolicyChanges changes the policy, its numbers and its lossless classes, and switches it off and on,
// while packets pass. No pool leaks, and no peer stays paused when the switch is empty.
func TestBufferPolicyChanges(t *testing.T) {
	race.SkipSequential(t)
	m := newMachine(t, loadProgram(t))
	rng := rand.New(rand.NewPCG(5, 6))
	var stored []*engine.Packet
	told := map[uint32]uint8{}
	frames := 0
	listen := func() {
		t.Helper()
		for _, f := range m.pfc {
			for class, time := range f.times {
				if bit := uint8(1) << class; f.classes&bit != 0 && time != 0 {
					told[f.port] |= bit
				} else if f.classes&bit != 0 {
					told[f.port] &^= bit
				}
			}
			frames++
		}
		m.pfc = m.pfc[:0]
	}
	numbers := []uint32{1, 4, 7, 10}
	arrive := func(n int) {
		for range n {
			m.now += units.Time(rng.IntN(4)) * units.Microsecond
			if p := m.arrive(numbers[rng.IntN(4)], uint8(rng.IntN(8)), 60+rng.IntN(1441)); p != nil {
				stored = append(stored, p)
			}
			listen()
		}
	}
	depart := func(n int) {
		for range min(n, len(stored)) {
			i := rng.IntN(len(stored))
			m.depart(stored[i])
			stored = append(stored[:i], stored[i+1:]...)
			listen()
		}
	}
	remove := func() {}
	kinds := headroom.Kinds()
	for round := range 120 {
		if round%5 == 4 {
			m.policy(buffer.Off())
			before := m.poll(1).Buffer.Used
			arrive(20) // with no policy, nothing is accounted
			if after := m.poll(1).Buffer.Used; after != before {
				t.Fatalf("round %d: without a policy the pools went from %+v to %+v", round, before, after)
			}
		} else {
			remove()
			remove = m.install(randomBuffer(kinds[rng.IntN(len(kinds))], rng))
			arrive(60)
		}
		depart(rng.IntN(70))
		for _, port := range numbers {
			if r := m.poll(port).Buffer; r.Paused() != told[port] {
				t.Fatalf("round %d: port %d has paused %08b, its peer was told %08b", round, port, r.Paused(), told[port])
			}
		}
		if round%20 == 19 {
			depart(len(stored))
			for _, port := range numbers {
				r := m.poll(port).Buffer
				r.Peak, r.LastPause = pollreport.Pools{}, 0
				if r != (pollreport.Buffer{}) || told[port] != 0 {
					t.Fatalf("round %d: everything has left, and port %d reports %+v; its peer was told %08b", round, port, r, told[port])
				}
			}
		}
	}
	if frames < 100 {
		t.Errorf("only %d PFC frames: the trace is too tame", frames)
	}
	if n := m.counter(ids.CounterDropsName, ids.DropBuffer); n == 0 {
		t.Error("nothing was ever dropped: the trace is too tame")
	}
}

// used returns the bytes of all accounts.
func (m *machine) used() uint64 {
	u := m.poll(1).Buffer.Used
	return uint64(u.Private) + uint64(u.Shared) + uint64(u.Headroom) + uint64(u.Insurance)
}

// TestBufferPolicyNeverOvercommits changes the policy during bursts of peers that do not obey. Whatever earlier
// policies hold, no packet is stored without room in the buffer.
func TestBufferPolicyNeverOvercommits(t *testing.T) {
	race.SkipSequential(t)
	const size = 700_000
	program := loadProgram(t)
	for seed := range uint64(20) {
		m := newMachine(t, program)
		rng := rand.New(rand.NewPCG(seed, 9))
		kinds, numbers := headroom.Kinds(), []uint32{1, 4, 7, 10}
		var stored []*engine.Packet
		remove := func() {}
		full := 0
		for round := range 12 {
			c := randomBuffer(kinds[rng.IntN(len(kinds))], rng)
			c.MMU.Buffer = size
			if _, err := c.MMU.Layout(); err != nil {
				continue
			}
			remove()
			remove = m.install(c)
			for range 300 {
				m.now += units.Time(rng.IntN(4)) * units.Microsecond
				if p := m.arrive(numbers[rng.IntN(4)], uint8(rng.IntN(8)), 1000+rng.IntN(501)); p != nil {
					stored = append(stored, p)
				}
			}
			used := m.used()
			if used > size {
				t.Fatalf("seed %d, round %d, %s: the accounts hold %d B of a buffer of %d B", seed, round, c.MMU.Policy, used, size)
			}
			if used > size*8/10 {
				full++
			}
			for range rng.IntN(1 + len(stored)/2) {
				i := rng.IntN(len(stored))
				m.depart(stored[i])
				stored = append(stored[:i], stored[i+1:]...)
			}
		}
		for _, p := range stored {
			m.depart(p)
		}
		if left := m.used(); left != 0 {
			t.Fatalf("seed %d: all packets have left, and the accounts hold %d B", seed, left)
		}
		if full == 0 {
			t.Errorf("seed %d: the buffer was never nearly full: the trace is too tame", seed)
		}
	}
}

// TestBufferHeadroomStaysAccounted fills SIH's headroom, then runs DSH: the bytes in SIH's headroom are not free
// in DSH's shared pool until they have left.
func TestBufferHeadroomStaysAccounted(t *testing.T) {
	race.SkipSequential(t)
	m := newMachine(t, loadProgram(t))
	numbers := []uint32{1, 4, 7, 10}
	config := func(kind headroom.Kind) buffer.Config {
		c := buffer.Config{Numbers: numbers, MMU: headroom.Config{
			Policy: kind, Buffer: 2400 * units.KB, Lossless: 0b0111_1111, MTU: 1500, Headroom: 60 * units.KB, Alpha: 2,
		}}
		for range numbers {
			c.MMU.Ports = append(c.MMU.Ports, headroom.Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond})
		}
		return c
	}
	var stored []*engine.Packet
	fill := func() {
		for range 2000 {
			for i := range 28 {
				if p := m.arrive(numbers[i%4], uint8(i/4), 1500); p != nil {
					stored = append(stored, p)
				}
			}
		}
	}
	remove := func() {}
	for _, kind := range []headroom.Kind{headroom.SIH, headroom.DSH, headroom.SIH} {
		remove()
		remove = m.install(config(kind))
		fill()
		if used := m.used(); used > 2_400_000 || used < 1_800_000 {
			t.Fatalf("under %s the accounts hold %d B of a buffer of 2400000 B", kind, used)
		}
	}
	for _, p := range stored {
		m.depart(p)
	}
	if left := m.used(); left != 0 {
		t.Fatalf("all packets have left, and the accounts hold %d B", left)
	}
}

// testBufferChange fills the headroom of one policy, changes to another policy and back. The accounts never hold
// more than the buffer.
func testBufferChange(r *rig) {
	b := newBufferRig(r)
	b.slow()
	for _, kind := range []headroom.Kind{headroom.SIH, headroom.DSH, headroom.SIH} {
		c := bufferConfig(kind)
		c.MMU.Alpha = 2
		b.run(c)
		for range 12 {
			for _, port := range losslessPorts() {
				for class := range uint8(8) {
					b.send(port, bufferFrame(r, port, slowPort, class))
				}
			}
		}
		b.settle()
		u := b.poll(1).Buffer.Used
		if used := units.Bytes(u.Private + u.Shared + u.Headroom + u.Insurance); used > c.MMU.Buffer || used < c.MMU.Buffer/2 {
			b.Errorf("under %s the accounts hold %+v, %d B of a buffer of %d B", kind, u, used, c.MMU.Buffer)
		}
	}
}

// TestPausedPeerForgets resets a paused peer. Its next packet, which the PAUSE should have stopped, triggers the
// PAUSE again at once. Packets that the PAUSE could not have stopped do not.
func TestPausedPeerForgets(t *testing.T) {
	m := newMachine(t, loadProgram(t))
	c := bufferConfig(headroom.SIH)
	for i := range c.MMU.Ports { // half of a PAUSE is 1.7 s
		c.MMU.Ports[i].Rate = 10 * units.Mbps
	}
	m.install(c)
	frames := func(after units.Time, class uint8) int {
		t.Helper()
		m.now += after
		m.arrive(3, class, bufferBytes)
		n := len(m.pfc)
		for _, f := range m.pfc {
			if pause, err := f.pause(c.Quanta); err != nil || !pause || f.port != 3 || f.classes != 1<<5 {
				t.Fatalf("%+v (%v), want a PAUSE of class 5 out of port 3", f, err)
			}
		}
		m.pfc = m.pfc[:0]
		return n
	}
	for i := 0; frames(units.Microsecond, 5) == 0; i++ {
		if i > 100 {
			t.Fatal("the port never pauses")
		}
	}
	response := c.MMU.Ports[1].Rate.TxTime(c.MMU.Link(1).Required())
	response += units.Microsecond - response%units.Microsecond // the switch's clock
	for _, s := range []struct {
		after units.Time
		class uint8
		want  int
		what  string
	}{
		{response - units.Microsecond, 5, 0, "a packet that was on its way when the PAUSE was sent"},
		{units.Microsecond, 0, 0, "a packet of a class that is not paused"},
		{0, 5, 1, "a packet that the PAUSE should have stopped"},
		{units.Microsecond, 5, 0, "a packet that was on its way when the second PAUSE was sent"},
		{response, 5, 1, "a peer that does not obey"},
	} {
		if got := frames(s.after, s.class); got != s.want {
			t.Errorf("%s: %d PFC frames, want %d", s.what, got, s.want)
		}
	}
}
