package fabric

import (
	"math/rand/v2"

	"github.com/headgate/headgate/fabric/topo"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// Signal is a PFC frame that a buffer wants sent out of an ingress port.
type Signal = headroom.Signal

// Buffer decides whether a switch's shared memory takes a packet and when the port it came
// by must be paused. Both methods return signals that are valid until the next call.
// A Buffer is owned by one switch of one Sim; *headroom.MMU is one.
type Buffer interface {
	// Arrive accounts for n bytes that came by an ingress port, or refuses them.
	Arrive(now units.Time, port int, class uint8, n units.Bytes) (ok bool, signals []Signal)
	// Depart takes them off again, when their packet starts to leave.
	Depart(now units.Time, port int, class uint8, n units.Bytes) []Signal
}

var _ Buffer = (*headroom.MMU)(nil)

// SwitchInfo is what a Buffer may want to know about its switch.
type SwitchInfo struct {
	Node  int
	Name  string
	Rates []units.Rate // per port
	Delay []units.Time // per port: propagation to the peer, the longest that it can be
	Peers []int        // per port: the node there
}

// InfoOf returns what a Buffer may want to know about a switch of a graph, whose ports are l.
func InfoOf(g *topo.Graph, l *topo.Ports, n int) SwitchInfo {
	info := SwitchInfo{Node: n, Name: g.Names[n]}
	for i := l.First[n]; i < l.First[n+1]; i++ {
		link := g.Links[l.Link[i]]
		info.Rates = append(info.Rates, link.Rate)
		info.Delay = append(info.Delay, link.Delay+link.Jitter+link.Spread)
		info.Peers = append(info.Peers, l.Node[l.Peer[i]])
	}
	return info
}

// RED is ECN marking by the length of the egress queue (Floyd and Jacobson 1993 without
// averaging, as in DCQCN §3.1): never below KMin, with probability rising to PMax at KMax,
// always above. Lengths are for a 100 Gb/s port when Scale is set, and scale with the rate.
type RED struct {
	KMin, KMax units.Bytes
	PMax       float64 // 0 to 1
	Scale      bool
}

// red is RED for one port and class; kmax 0 marks never.
type red struct {
	kmin, kmax units.Bytes
	pmax       float64
}

func (r *red) marks(queue units.Bytes, rng *rand.Rand) bool {
	if queue <= r.kmin || r.kmax == 0 {
		return false
	}
	if queue >= r.kmax {
		return true
	}
	return rng.Float64() < r.pmax*float64(queue-r.kmin)/float64(r.kmax-r.kmin)
}

// node is a switch; hosts have one too, unused.
type node struct {
	buffer Buffer        // nil: unlimited
	mmu    *headroom.MMU // buffer, if it is one: two calls a hop are worth calling directly
	first  int32         // its ports start here
}

// arrive takes the packet that is due at port i.
func (s *part) arrive(i int32) {
	p := &s.ports[i]
	e := p.wire.pop()
	if p.wire.n != 0 {
		s.agenda.Schedule(p.wire.next(s.now), evArrive, i)
	}
	if p.in.down {
		s.lose(e.k, &s.stats.LostOnLinks)
		return
	}
	if e.kind() == kindPFC {
		// The receiver takes its processing time before it stops sending.
		s.agenda.Schedule(s.now+s.pfcDelay(p), evPause, i)
		s.obeying++
		s.pauses[i].obeying.push(s.pool.packets, e.k)
		return
	}
	s.stats.PacketHops++
	if p.in.isHost {
		s.receive(p, e.k)
		return
	}
	n := &s.nodes[p.in.node]
	if n.buffer != nil {
		var ok bool
		var signals []Signal
		if n.mmu != nil {
			ok, signals = n.mmu.Arrive(s.now, int(p.in.local), e.class(), units.Bytes(e.size()))
		} else {
			ok, signals = n.buffer.Arrive(s.now, int(p.in.local), e.class(), units.Bytes(e.size()))
		}
		if len(signals) > 0 {
			// At once: PFC frames go before all else and change nothing in the buffer.
			s.signal(n, signals)
		}
		if !ok {
			s.stats.Drops[e.class()]++
			p.dropped++
			if k := e.kind(); k != kindData && k != kindProbe {
				s.stats.AnswersDropped++
			}
			s.lose(e.k, &s.stats.Dropped)
			return
		}
	}
	s.forward(i, e)
}

// forward hands a packet that came into a switch by port in to its egress port.
func (s *part) forward(in int32, e onWire) {
	out := s.routes[e.route]
	e.route++
	o := &s.ports[out]
	class, size := e.class(), e.size()
	if o.down {
		s.release(o.node, in, class, units.Bytes(size))
		s.lose(e.k, &s.stats.LostOnLinks)
		return
	}
	if s.paccs != nil && e.kind() == kindData && class == s.paccs[out].class {
		s.paccs[out].count(s, e.k, size)
	}
	bit := uint8(1) << class
	if o.freeAt <= s.now && !o.pending && (o.active&^o.paused)|(o.active|o.paused)&bit == 0 && o.ctrl.head == 0 {
		// Nothing to wait for. What stamp does for a packet that has waited does not apply.
		if s.needs.INT {
			s.pool.packets[e.k].at = s.now
			s.stamp(out, o, e.k)
		}
		s.send(out, o, size, e)
		s.release(o.node, in, class, units.Bytes(size))
		return
	}
	pk := &s.pool.packets[e.k]
	pk.route, pk.in = e.route, in
	s.enqueue(o, class, e.k, size)
	if !o.pending {
		s.kick(out)
	}
}

// stamp does what a switch's egress does to a packet that leaves now.
func (s *part) stamp(i int32, p *port, k int32) {
	pk := &s.pool.packets[k]
	class := pk.class
	if kd := pk.kind(); kd == kindData || kd == kindProbe {
		if s.reds != nil && s.reds[i*NumClasses+int32(class)].marks(p.queues[class].bytes, s.chances[p.node].ecn) {
			pk.set(flagCE)
			s.stats.Marks++
		}
		if s.needs.MaxQD {
			if x := &s.pool.extras[k]; s.now-pk.at > x.maxQD {
				x.maxQD = s.maxQDUnit.Decode(s.maxQDUnit.Encode(s.now - pk.at))
			}
		}
		if s.needs.INT {
			if t := s.pool.extras[k].tele; t != 0 {
				s.record(t, p, class)
			}
		}
	}
}

// release gives a packet's bytes back to the buffer of a switch, which it came into by port in. That
// port itself is not looked at: in a large fabric it is in no cache by now.
func (s *part) release(node, in int32, class uint8, n units.Bytes) {
	if in == ownPacket {
		return
	}
	at := &s.nodes[node]
	var signals []Signal
	switch {
	case at.mmu != nil:
		signals = at.mmu.Depart(s.now, int(in-at.first), class, n)
	case at.buffer != nil:
		signals = at.buffer.Depart(s.now, int(in-at.first), class, n)
	}
	if len(signals) > 0 {
		s.signal(at, signals)
	}
}

// lose frees a packet that does not arrive.
func (s *part) lose(k int32, count *uint64) {
	*count++
	s.discard(k)
}
