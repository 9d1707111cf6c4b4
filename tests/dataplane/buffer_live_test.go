package dataplane

import (
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/units"
)

// TestBufferPolicyChanges changes the policy, its numbers and its lossless classes, and
// switches it off and on, while packets pass: no pool leaks, and no peer stays paused when
// nothing is left.
func TestBufferPolicyChanges(t *testing.T) {
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
