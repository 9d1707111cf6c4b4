package cnpgen

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/headgate/headgate/tests/cost"
	"github.com/headgate/headgate/units"
)

// numbered is the n-th flow at a port. All flows share one source address, or each has its own.
func numbered(port uint32, n int, one bool) Flow {
	addr := func(n int) netip.Addr {
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 20<<24|uint32(n))))
	}
	f := Flow{FlowKey{Src: addr(n), Dst: addr(0)}, port}
	if one {
		f.Src, f.Dst = netip.AddrFrom4([4]byte{30, 0, 0, 1}), addr(n)
	}
	return f
}

// TestQuotas: unknown sources at one port, or one address with very many destinations, leave room for a flow at
// another port and for a flow of another address. Those flows keep their table entries while they send.
func TestQuotas(t *testing.T) {
	const most = 1000
	for name, one := range map[string]bool{"made-up sources": false, "one source": true} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, most)
			f.run(t, period)
			honest := map[Flow]sender{flow(1, 1): {1000, 0}}
			f.send(honest) // learned
			f.run(t, 2*period)
			n := 0
			for p := units.Time(3); p < 60; p++ {
				for range 500 {
					n++
					f.loop.Learned(numbered(1, n, one))
				}
				f.send(honest)
				f.run(t, p*period)
			}
			s := f.loop.Stats()
			want := most * portShare / (portShare + 1)
			if one {
				want = most/sourceShare + 1 // and the well-behaved one
			}
			if s.Flows > want || s.Flows < want/2 || s.Evicted == 0 || s.Refused == 0 {
				t.Errorf("%+v, want at most %d flows", s, want)
			}
			if f.table[flow(1, 1)] == nil {
				t.Error("the flow that sends lost its place to others")
			}
			others := []Flow{flow(2, 9)}
			if one {
				others = append(others, flow(1, 9))
			}
			f.loop.Learned(others...)
			f.run(t, 62*period)
			for _, other := range others {
				if f.table[other] == nil {
					t.Errorf("a flow of %v at port %d finds no room", other.Src, other.Port)
				}
			}
			if l := &f.loop.table; len(l.flows) != s.Flows+len(others) || len(l.ofSource) > len(l.flows) {
				t.Errorf("%d flows of %d sources", len(l.flows), len(l.ofSource))
			}
		})
	}
}

// TestLearningCostsTheSame: reporting a flow costs the same with a full table of 65 536 flows as with one of a
// single flow, whether the flow replaces another or is refused.
func TestLearningCostsTheSame(t *testing.T) {
	for name, written := range map[string]bool{"eviction": true, "refusal": false} {
		t.Run(name, func(t *testing.T) {
			cost.Flat(t, func(size int) func() {
				table, n := filled(size, written), size
				var st LoopStats
				return func() {
					n++
					f := numbered(1, n, false)
					table.learn(f, uint64(2*(1+n)), &st) // a flow can be evicted after a period
					if s := table.flows[f]; (s != nil) != written {
						t.Fatalf("flow %d is in the table: %t, want %t", n, s != nil, written)
					} else if s != nil {
						s.written = true
					}
				}
			})
		})
	}
}

// filled is a full table. Flows whose entries are not written cannot be evicted.
func filled(size int, written bool) *learned {
	table := newLearned(size, 1, func(uint32) bool { return true })
	for i := range size {
		table.put(numbered(1, i, false), &flowState{written: written})
	}
	return &table
}

// BenchmarkLearn measures a flow that replaces another one.
func BenchmarkLearn(b *testing.B) {
	for _, size := range []int{1, cost.Many} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			table := filled(size, true)
			var st LoopStats
			for n := size; b.Loop(); n++ {
				f := numbered(1, n, false)
				table.learn(f, uint64(2*(1+n)), &st) // a flow can be evicted after a period
				if s := table.flows[f]; s != nil {
					s.written = true
				}
			}
		})
	}
}
