package sim

import (
	"cmp"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// newRoutes stores the paths of a flow and of its acknowledgements, and returns where they start in Sim.routes.
// Both have the same number of hops, because a link works in both directions or not at all. As with NICs, an
// acknowledgement has the UDP ports of its packet and another queue pair.
func (s *Sim) newRoutes(src, dst int, spec *FlowSpec, hash uint64) (route, back, hops int32, err error) {
	f := topo.Flow{Hash: hash, SrcPort: cmp.Or(spec.SrcPort, firstDynamic|uint16(hash>>50))}
	if e := s.graph.ECMP; e != nil {
		f.DstPort = e.RoCEPort
		if spec.needs().MaxQD {
			f.DstPort = e.MaxQDPort
		}
	}
	s.path, err = s.router.Path(s.path[:0], src, dst, f)
	if err != nil {
		return 0, 0, 0, err
	}
	hops = int32(len(s.path))
	route = s.storeRoute(s.path)
	f.Hash ^= backSalt
	s.path, err = s.router.Path(s.path[:0], dst, src, f)
	if err != nil {
		return 0, 0, 0, err
	}
	return route, s.storeRoute(s.path), hops, nil
}

// firstDynamic is the first of the 2^14 dynamic ports of RFC 6335. RoCE draws source ports from them as entropy.
const firstDynamic = 0xC000

// backSalt gives a flow's acknowledgements a hash of their own, and so a path of their own.
const backSalt = 0x5851F42D4C957F2D

// flowHash returns a number in place of the hash of a flow's five-tuple. It depends on the run's seed and the
// flow's number, so another seed changes the choices of ECMP.
func (s *Sim) flowHash(spec *FlowSpec, i int32) uint64 {
	return splitmix(s.ecmpSeed ^ splitmix(uint64(i)<<32^uint64(spec.Src)<<16^uint64(spec.Dst)))
}

func (s *Sim) storeRoute(path []int32) int32 {
	at := int32(len(s.routes))
	s.routes = append(s.routes, path...)
	return at
}

// baseRTT returns the round trip of a full packet and its acknowledgement over empty paths, and the time until the
// packet arrives.
func (s *Sim) baseRTT(f *flow) (rtt, oneWay units.Time) {
	for h := range f.hops {
		out, in := &s.ports[s.routes[f.route+h]], &s.ports[s.routes[f.back+h]]
		oneWay += out.txTime(uint16(s.mtu)) + out.delay
		rtt += in.txTime(uint16(s.ackSize)) + in.delay
	}
	return rtt + oneWay, oneWay
}

// ideal returns the completion time of a flow that is alone, sent at line rate, up to its last acknowledgement. It
// returns 0 for an endless flow. Let all packets but the last be full. Full packet j leaves hop k at Σ(tx_i + d_i)
// − d_k over i ≤ k, plus j − 1 times the longest of their tx_i. The last, shorter packet leaves a hop as soon as
// it has arrived there and the packet before it has left. So it may catch up with that packet, and their
// acknowledgements may meet on a slower link back.
func (s *Sim) ideal(f *flow) units.Time {
	if f.spec.Size == 0 {
		return 0
	}
	n := (f.spec.Size + s.mss - 1) / s.mss
	tail := s.frame(s.lastPayload(f.spec.Size))
	var first, before, slowest units.Time // departures of the first and the last full packet; longest tx so far
	var last, delay units.Time
	for h := range f.hops {
		p := &s.ports[s.routes[f.route+h]]
		tx := p.txTime(uint16(s.mtu))
		first += tx + delay
		slowest = max(slowest, tx)
		ready := last + delay
		if n > 1 {
			before = first + units.Time(n-2)*slowest
			ready = max(ready, before)
		}
		last = ready + p.txTime(tail)
		delay = p.delay
	}
	for h := range f.hops {
		p := &s.ports[s.routes[f.back+h]]
		tx := p.txTime(uint16(s.ackSize))
		ready := last + delay
		if n > 1 {
			before += delay + tx
			ready = max(ready, before)
		}
		last = ready + tx
		delay = p.delay
	}
	return last + delay
}

// frame returns the size of a data frame, padded to Ethernet's least.
func (s *Sim) frame(payload units.Bytes) uint16 { return uint16(max(payload+s.header, minFrame)) }

// minFrame is the least size of an Ethernet frame (IEEE 802.3 §3.2.8).
const minFrame = 64

// lastPayload returns the payload of the last packet of a flow of the given size.
func (s *Sim) lastPayload(size units.Bytes) units.Bytes { return (size-1)%s.mss + 1 }
