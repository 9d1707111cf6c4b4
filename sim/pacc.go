package sim

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// PACC makes the switches' egress ports detect congestion and send CNPs to the sources that cause it,
// by package cnpgen. Receivers then need not send CNPs (CNPGap 0).
type PACC struct {
	Class  uint8                            // the class whose queue and packets are watched
	Params func(r units.Rate) cnpgen.Params // returns a port's parameters for the rate of its link
}

// paccPort is PACC at one egress port of a switch. The Sim owns it. It ticks once an interval at its
// own phase, because the clocks of a fabric's ports are not in step, and only while there is traffic.
type paccPort struct {
	class     uint8
	port      int32
	interval  units.Time
	phase     units.Time
	threshold units.Bytes
	engine    *cnpgen.Port

	counts  []cnpgen.FlowCount // packets in the present period, by row
	rows    []paccRow
	index   map[uint64]int32 // rows by pair of hosts
	ticking bool
	sendAt  units.Time // time of the pending evCNP, MaxTime for none
}

type paccRow struct {
	pair uint64
	flow int32 // the first flow of the pair
}

// pairOf returns a number that identifies the flows from one host to another.
func pairOf(src, dst int32) uint64 { return uint64(uint32(src))<<32 | uint64(uint32(dst)) }

// flowKey returns addresses made from the numbers of the hosts.
func flowKey(src, dst int32) cnpgen.FlowKey {
	var a, b [4]byte
	binary.BigEndian.PutUint32(a[:], uint32(src))
	binary.BigEndian.PutUint32(b[:], uint32(dst))
	return cnpgen.FlowKey{Src: netip.AddrFrom4(a), Dst: netip.AddrFrom4(b)}
}

func pairOfKey(k cnpgen.FlowKey) uint64 {
	a, b := k.Src.As4(), k.Dst.As4()
	return uint64(binary.BigEndian.Uint32(a[:]))<<32 | uint64(binary.BigEndian.Uint32(b[:]))
}

func (s *Sim) buildPACC(c *PACC, seed uint64) error {
	if c.Class >= NumClasses {
		return fmt.Errorf("pacc: class %d, want 0 to %d", c.Class, NumClasses-1)
	}
	s.paccs = make([]*paccPort, len(s.ports))
	s.cnpRoutes = map[uint64]int32{}
	for _, p := range s.partitions {
		p.pairs = map[uint64][]int32{}
	}
	phases := Stream(seed, "pacc")
	for i := range s.ports {
		if s.ports[i].isHost {
			continue
		}
		par := c.Params(s.ports[i].rate)
		engine, err := cnpgen.NewPort(par)
		if err != nil {
			return fmt.Errorf("pacc: %w", err)
		}
		p := &paccPort{
			class: c.Class, port: int32(i), interval: par.Interval, threshold: par.Threshold,
			phase:  units.Time(phases.Int64N(int64(par.Interval))),
			engine: engine, index: map[uint64]int32{}, sendAt: units.MaxTime,
		}
		s.paccs[i] = p
	}
	return nil
}

// count is RECEIVE_PACKET of Algorithm 1 for a data packet of flow i that is about to join the queue.
func (p *paccPort) count(s *partition, i int32, size uint16) {
	if !p.ticking {
		p.wake(s)
	}
	f := &s.flows[i]
	pair := pairOf(f.src, f.dst)
	row, ok := p.index[pair]
	if !ok {
		row = int32(len(p.rows))
		p.index[pair] = row
		p.rows = append(p.rows, paccRow{pair: pair, flow: i})
		p.counts = append(p.counts, cnpgen.FlowCount{Key: flowKey(f.src, f.dst)})
	}
	c := &p.counts[row]
	c.Bytes += uint64(size)
	if s.ports[p.port].queues[p.class].bytes > p.threshold {
		c.Congested++
	}
}

// wake starts the ticks again. The queue was empty until now, so it was empty at every tick left out.
func (p *paccPort) wake(s *partition) {
	last := s.now - (s.now+p.interval-p.phase)%p.interval
	p.engine.Tick(max(last, 0), 0, nil)
	p.ticking = true
	s.events.schedule(last+p.interval, evTick, p.port)
}

func (p *paccPort) onTick(s *partition) {
	queue := s.ports[p.port].queues[p.class].bytes
	p.forget()
	p.engine.Tick(s.now, queue, p.counts)
	for i := range p.counts {
		p.counts[i].Bytes, p.counts[i].Congested = 0, 0
	}
	p.arm(s)
	p.ticking = len(p.rows) > 0 || queue > 0 || p.engine.Len() > 0
	if p.ticking {
		s.events.schedule(s.now+p.interval, evTick, p.port)
	}
}

// forget removes the rows of pairs that sent nothing in the period.
func (p *paccPort) forget() {
	n := int32(0)
	for i := range p.rows {
		r := p.rows[i]
		if p.counts[i].Bytes == 0 {
			delete(p.index, r.pair)
			continue
		}
		p.rows[n], p.counts[n] = r, p.counts[i]
		p.index[r.pair] = n
		n++
	}
	p.rows, p.counts = p.rows[:n], p.counts[:n]
}

// arm makes sure that onSend is called when the next CNP is due.
func (p *paccPort) arm(s *partition) {
	if at := p.engine.Next(); at < p.sendAt {
		p.sendAt = at
		s.events.schedule(at, evCNP, p.port)
	}
}

func (p *paccPort) onSend(s *partition) {
	if p.sendAt == s.now {
		p.sendAt = units.MaxTime
	}
	for {
		k, ok := p.engine.Pop(s.now)
		if !ok {
			break
		}
		row, ok := p.index[pairOfKey(k)]
		if !ok {
			continue // the source has been silent for a period
		}
		s.notifySource(p.port, &p.rows[row])
	}
	p.arm(s)
}

// notifySource sends a CNP from the switch of a port to the source of a pair, in the class of ACKs. The CNP is for
// all flows of the pair, because PACC counts by pairs of addresses, not by five-tuples. It slows them like a NIC
// that has one limiter per destination. The CNP is lost if a link on its path has failed.
func (s *partition) notifySource(port int32, r *paccRow) {
	route, ok := s.cnpRoutes[pairOf(s.ports[port].node, s.flows[r.flow].src)]
	if !ok {
		return
	}
	out := s.routes[route]
	o := &s.ports[out]
	if o.down {
		return
	}
	s.alloc()
	s.stats.CNPs++
	e := packet{what: pack(uint16(s.ackSize), s.ackClass, kindCNP), flow: r.flow, route: route}
	e.set(flagPair)
	s.enqueue(o, s.ackClass, &e, ownPacket)
	s.schedulePort(out)
}

// unpair removes an ended flow from its pair.
func (s *partition) unpair(i int32) {
	pair := pairOf(s.flows[i].src, s.flows[i].dst)
	left := slices.DeleteFunc(s.pairs[pair], func(j int32) bool { return j == i })
	if len(left) == 0 {
		delete(s.pairs, pair)
		return
	}
	s.pairs[pair] = left
}

// routeCNPs makes sure that the switches on a flow's path have a path to its source for their CNPs.
// The paths hold until a link fails or is repaired.
func (s *Sim) routeCNPs(f *flow) {
	if s.paccs == nil {
		return
	}
	for h := int32(1); h < f.hops; h++ {
		node := s.ports[s.routes[f.route+h]].node
		key := pairOf(node, f.src)
		if _, ok := s.cnpRoutes[key]; ok {
			continue
		}
		var err error
		if s.path, err = s.router.Path(s.path[:0], int(node), int(f.src), topo.Flow{}); err == nil {
			s.cnpRoutes[key] = s.storeRoute(s.path)
		}
	}
}

// ownPacket is the ingress port of a packet that its switch made. No ingress queue accounts for it.
const ownPacket = -1
