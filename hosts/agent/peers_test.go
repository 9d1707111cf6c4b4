package agent

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/tests/cost"
	"github.com/headgate/headgate/units"
)

// source is the n-th of many addresses.
func source(n int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 10<<24|uint32(n+1))))
}

// receiver is an agent with n incoming flows, each from an address of its own. All were last heard at
// units.Second.
func receiver(flows int) *Agent {
	ip := netip.MustParseAddr("9.0.0.1")
	a := &Agent{cfg: Config{IP: ip}, peers: newPeers(), byQP: map[uint32]*flow{}, byDst: map[netip.Addr][]*flow{}}
	for i := range flows {
		a.peers.heard(units.Second, source(i), 1, 7)
	}
	return a
}

// dataFrom is a data frame of one of receiver's flows, or of an unknown flow.
func dataFrom(a *Agent, src netip.Addr, qp uint32) *packet.Frame {
	return &packet.Frame{Src: src, Dst: a.cfg.IP, SrcPort: 1, BTH: packet.BTH{DestQP: qp, Opcode: packet.SendOnly}}
}

// TestFrameCostsTheSame: the cost of a data frame does not depend on the number of flows: for a known flow, one
// without room, one that replaces an idle flow, and for a notification for none of the host's flows.
func TestFrameCostsTheSame(t *testing.T) {
	for name, call := range map[string]func(size int) func(){
		"known": func(size int) func() {
			a := receiver(size)
			n := 0
			return func() {
				n++
				a.onData(units.Second, dataFrom(a, source(n*7919%size), 7))
				a.answers.Pop()
			}
		},
		"no room": func(size int) func() {
			a := receiver(size)
			n := uint32(8)
			return func() {
				n++
				before := a.counts.Refused
				if a.onData(units.Second, dataFrom(a, source(0), n)); size == maxPeers && a.counts.Refused != before+1 {
					panic("a flow beyond the bound was taken")
				}
			}
		},
		"in place of an idle one": func(size int) func() {
			a := receiver(size)
			n := uint32(8)
			return func() {
				n++
				if a.onData(units.Second+peerIdle+1, dataFrom(a, source(int(n)), n)); len(a.peers.list) > maxPeers || a.counts.Refused > 0 {
					panic(fmt.Sprint(len(a.peers.list), a.counts.Refused))
				}
			}
		},
		"a stranger's notification": func(size int) func() {
			a := receiver(0)
			for i := range size {
				a.bind(&flow{key: FlowKey{Dst: source(i)}, qp: uint32(i + 1)})
			}
			f := &packet.Frame{Src: source(1 << 20), Dst: a.cfg.IP, BTH: packet.BTH{Opcode: packet.CNP, BECN: true}}
			return func() { a.onCNP(units.Second, f) }
		},
	} {
		t.Run(name, func(t *testing.T) { cost.Flat(t, call) })
	}
}

// TestPeersOfOneSource: one address does not fill the table, and its own idle flow makes room for its next
// flow.
func TestPeersOfOneSource(t *testing.T) {
	a := receiver(1)
	for i := range uint32(maxPeersOfSource + 10) {
		a.onData(units.Second, dataFrom(a, source(0), 100+i))
	}
	if n := len(a.peers.list); n != maxPeersOfSource || a.counts.Refused != 11 {
		t.Errorf("%d flows of one address, %d refused, want %d and 11", n, a.counts.Refused, maxPeersOfSource)
	}
	later := units.Second + peerIdle + 1
	a.peers.heard(later, source(0), 1, 7) // the oldest, which is active again
	if a.onData(later, dataFrom(a, source(0), 7000000)); a.counts.Refused != 11 || len(a.peers.list) != maxPeersOfSource {
		t.Errorf("%d refused, %d flows: an idle flow did not make room", a.counts.Refused, len(a.peers.list))
	}
	if at, _ := a.peers.find(&peerKey{source(0).As16(), 1, 7}); a.peers.slots[at].at == 0 {
		t.Error("the flow in use was forgotten instead of an idle one")
	}
	if a.onData(units.Second, dataFrom(a, source(1), 1)); len(a.peers.list) != maxPeersOfSource+1 {
		t.Error("another address finds no room")
	}
}

// TestFlowsByDestination: a flow is in the index by destination as long as it is in the index by
// queue pair.
func TestFlowsByDestination(t *testing.T) {
	a := receiver(0)
	var list []*flow
	for i := range 5 {
		list = append(list, &flow{key: FlowKey{Dst: source(i % 2)}, qp: uint32(i + 1)})
		a.bind(list[i])
	}
	for _, i := range []int{0, 4, 4, 2, 1, 3} {
		a.unbind(list[i])
		for dst, flows := range a.byDst {
			for at, f := range flows {
				if f.dstAt != at || f.key.Dst != dst || a.byQP[f.qp] != f {
					t.Errorf("after flow %d: flow %d is at %d of %v", i, f.qp, at, dst)
				}
			}
		}
	}
	if len(a.byDst)+len(a.byQP) != 0 {
		t.Errorf("%d destinations and %d queue pairs are left", len(a.byDst), len(a.byQP))
	}
}

// BenchmarkData measures a data frame of a known flow, and one of a flow without room.
func BenchmarkData(b *testing.B) {
	for _, size := range []int{1, maxPeers} {
		a := receiver(size)
		b.Run(fmt.Sprintf("known/%d", size), func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				a.onData(units.Second, dataFrom(a, source(n*7919%size), 7))
				a.answers.Pop()
			}
		})
		b.Run(fmt.Sprintf("unknown/%d", size), func(b *testing.B) {
			for n := uint32(8); b.Loop(); n++ {
				a.onData(units.Second, dataFrom(a, source(0), n))
			}
		})
		b.Run(fmt.Sprintf("in place of an idle one/%d", size), func(b *testing.B) {
			now := units.Second
			for n := 0; b.Loop(); n++ {
				now += peerIdle + 1
				a.onData(now, dataFrom(a, source(n*7919%size), uint32(n)))
				a.answers.Pop()
			}
		})
	}
}

// TestPeersAreFound: after any sequence of new and forgotten flows, each listed flow is found by its key and in its
// address's ring, and no others are found.
func TestPeersAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, now, refused := newPeers(), units.Second, 0
	for round := range 6 {
		for range maxPeers {
			now += units.Time(rng.Int64N(int64(peerIdle / maxPeers)))
			// Three addresses have the maximum number of flows, others have few.
			src := source(rng.IntN(3))
			if rng.IntN(2) == 0 {
				src = source(3 + rng.IntN(1<<14))
			}
			if p.heard(now, src, uint16(rng.IntN(4)), rng.Uint32N(1<<13)) < 0 {
				refused++
			}
		}
		if len(p.list) > maxPeers || 2*len(p.list) > len(p.slots) {
			t.Fatalf("%d flows in %d slots", len(p.list), len(p.slots))
		}
		taken, ring := 0, map[[16]byte]int32{}
		for _, s := range p.slots {
			if s.at != 0 {
				taken++
			}
		}
		for i := range p.list {
			x := &p.list[i]
			if at, _ := p.find(&x.key); p.slots[at].at != int32(i+1) {
				t.Fatalf("round %d: flow %d is not found", round, i)
			}
			if p.list[x.next].before != int32(i) || p.list[x.before].next != int32(i) || p.list[x.next].key.src != x.key.src {
				t.Fatalf("round %d: flow %d is not in the ring of its address", round, i)
			}
			ring[x.key.src]++
		}
		for src, own := range p.sources {
			if own.flows != ring[src] || p.list[own.first].key.src != src || own.flows > maxPeersOfSource {
				t.Fatalf("round %d: %v has %d flows, %d in the list", round, netip.AddrFrom16(src), own.flows, ring[src])
			}
		}
		if taken != len(p.list) || len(p.sources) != len(ring) {
			t.Fatalf("round %d: %d slots and %d addresses for %d flows of %d", round, taken, len(p.sources), len(p.list), len(ring))
		}
	}
	if len(p.list) < maxPeers || refused == 0 {
		t.Errorf("%d flows, %d refused: the test fills nothing", len(p.list), refused)
	}
}
