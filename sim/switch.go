package sim

import (
	"math/rand/v2"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim/topo"
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
	// Depart releases n bytes of a packet when it starts to leave.
	Depart(now units.Time, port int, class uint8, n units.Bytes) []Signal
}

var _ Buffer = (*headroom.MMU)(nil)

// SwitchInfo describes a switch to its Buffer.
type SwitchInfo struct {
	Node  int
	Name  string
	Rates []units.Rate // per port
	Delay []units.Time // per port: the longest propagation from the peer, with Jitter and Spread
	Peers []int        // per port: the node there
}

// InfoOf returns the description of switch n of a graph for its Buffer. l has the graph's ports.
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

// RED is ECN marking by the length of the egress queue (Floyd and Jacobson 1993 without averaging, as
// in DCQCN §3.1). Below KMin nothing is marked. The probability rises to PMax at KMax and is 1 above.
// With Scale, lengths are for a 100 Gb/s port and scale with the rate.
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
	buffer Buffer // nil: unlimited
	first  int32  // index of its first port
}

// setBuffer gives a switch its buffer. Ports get an MMU directly too, because two calls a hop are
// worth avoiding the interface.
func (s *Sim) setBuffer(n int, b Buffer) {
	s.nodes[n].buffer = b
	mmu, _ := b.(*headroom.MMU)
	for i := s.layout.First[n]; i < s.layout.First[n+1]; i++ {
		s.ports[i].mmu = mmu
	}
}

// takeFromLink takes the first packet of the link to port i, whose arrival is due.
func (s *partition) takeFromLink(i int32) *packet {
	l := &s.ports[i].wire
	e := s.store.pop(l)
	if l.head != 0 {
		s.events.schedule(s.store.slots[l.head].due(s.now), evArrive, i)
	}
	return e
}

// arriveAt takes a packet that has arrived at port i.
func (s *partition) arriveAt(i int32, p *port, e *packet) {
	if p.down {
		s.lose(e, &s.stats.LostOnLinks)
		return
	}
	if e.kind() == kindPFC {
		// The receiver takes its processing time before it stops sending.
		s.events.schedule(s.now+s.pfcDelay(p), evPause, i)
		s.pendingPFC++
		s.store.push(&s.pauses[i].pendingPFC, e)
		return
	}
	s.stats.PacketHops++
	if p.isHost {
		s.receive(e)
		return
	}
	class, size := e.class(), e.size()
	ok, signals := true, []Signal(nil)
	if p.mmu != nil {
		ok, signals = p.mmu.Arrive(s.now, int(p.local), class, units.Bytes(size))
	} else if b := s.nodes[p.node].buffer; b != nil {
		ok, signals = b.Arrive(s.now, int(p.local), class, units.Bytes(size))
	}
	if len(signals) > 0 {
		// PFC frames are sent at once: they precede everything else and change nothing in the buffer. They may
		// make other packets leave.
		kept := *e
		e = &kept
		s.signal(p.node, signals)
	}
	if !ok {
		s.stats.Drops[class]++
		p.dropped++
		if k := e.kind(); k != kindData && k != kindProbe {
			s.stats.AnswersDropped++
		}
		s.lose(e, &s.stats.Dropped)
		return
	}
	s.forward(int32(p.local), e)
}

// forward hands a packet to its egress port. in is the number of its ingress port at the same switch.
func (s *partition) forward(in int32, e *packet) {
	out := s.routes[e.route]
	o := &s.ports[out]
	class, size := e.class(), e.size()
	if o.down {
		s.release(o, in, class, units.Bytes(size))
		s.lose(e, &s.stats.LostOnLinks)
		return
	}
	if s.paccs != nil && e.kind() == kindData && class == s.paccs[out].class {
		s.paccs[out].count(s, e.flow, size)
	}
	if o.idle(s.now, class) {
		s.sendAtOnce(out, o, size, e)
		s.release(o, in, class, units.Bytes(size))
		return
	}
	s.enqueue(o, class, e, in)
	if !o.pending {
		s.schedulePort(out)
	}
}

// sendAtOnce sends a packet that does not wait in a queue. Of the changes that stamp makes, such a packet needs
// only the in-band telemetry.
func (s *partition) sendAtOnce(out int32, o *port, size uint16, e *packet) {
	if s.needs.INT && e.extra != 0 {
		s.extras.all[e.extra].since = s.now
		s.stamp(out, o, e)
	}
	s.send(out, o, size, e)
}

// stamp makes the changes of a switch's egress to a packet that leaves now.
func (s *partition) stamp(i int32, p *port, e *packet) {
	if kd := e.kind(); kd == kindData || kd == kindProbe {
		class := e.class()
		if s.reds != nil && s.reds[i*NumClasses+int32(class)].marks(p.queues[class].bytes, s.chances[p.node].ecn) {
			e.set(flagCE)
			s.stats.Marks++
		}
		if e.extra == 0 {
			return
		}
		x := &s.extras.all[e.extra]
		if s.needs.MaxQD && s.now-x.since > x.maxQD {
			x.maxQD = s.maxQDUnit.Decode(s.maxQDUnit.Encode(s.now - x.since))
		}
		if x.tele != 0 {
			s.record(x.tele, p, class)
		}
	}
}

// release returns a packet's bytes to the buffer of its switch, for the ingress port with number in
// there. It does not access that port, which in a large fabric is not in the cache.
func (s *partition) release(p *port, in int32, class uint8, n units.Bytes) {
	if in == ownPacket {
		return
	}
	var signals []Signal
	if p.mmu != nil {
		signals = p.mmu.Depart(s.now, int(in), class, n)
	} else if b := s.nodes[p.node].buffer; b != nil {
		signals = b.Depart(s.now, int(in), class, n)
	}
	if len(signals) > 0 {
		s.signal(p.node, signals)
	}
}

// lose counts and frees a packet that does not arrive.
func (s *partition) lose(e *packet, count *uint64) {
	*count++
	s.free(e)
}
