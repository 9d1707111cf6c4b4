package fabric

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// nic is a host's sending side: the flows that may send, in turn, per class.
type nic struct {
	ready [NumClasses]struct{ head, tail int32 }
}

func (s *Sim) nicPort(host int32) int32 { return s.nodes[host].first }

// list puts a flow at the end of its host's list of ready flows.
func (s *part) list(i int32) {
	f := &s.flows[i]
	f.listed = true
	if s.ranked {
		s.listRanked(i)
		return
	}
	f.next = 0
	q := &s.nics[f.src].ready[f.class]
	if q.head == 0 {
		q.head = i
		s.ports[s.nicPort(f.src)].ready |= 1 << f.class
	} else {
		s.flows[q.tail].next = i
	}
	q.tail = i
}

// consider lists a flow that may send now and wakes it later if it may send later.
func (s *part) consider(i int32) {
	f := &s.flows[i]
	if f.listed {
		f.stale = true
		return
	}
	if f.tx == nil {
		return
	}
	port := s.nicPort(f.src)
	switch at := f.tx.Ready(s.now); {
	case at <= s.now:
		s.list(i)
		s.kick(port)
	case at < f.wakeAt:
		f.wakeAt = at
		s.agenda.Schedule(at, evWake, i)
	}
}

// wake looks at a flow again when its pacing says that it may send.
func (s *part) wake(i int32) {
	f := &s.flows[i]
	if f.wakeAt != s.now {
		return // an earlier wake has overtaken this one
	}
	f.wakeAt = units.MaxTime
	s.consider(i)
}

// armTimer makes sure that a timer of the flow goes off by its deadline. A deadline that
// moves later is looked at again when the earlier one comes.
func (s *part) armTimer(i int32) {
	f := &s.flows[i]
	if at := f.tx.Deadline(); at < f.timerAt {
		f.timerAt = at
		s.agenda.Schedule(at, evTimer, i)
	}
}

func (s *part) timer(i int32) {
	f := &s.flows[i]
	if f.timerAt != s.now {
		return
	}
	f.timerAt = units.MaxTime
	if f.tx == nil {
		return
	}
	f.tx.OnTimer(s.now)
	s.armTimer(i)
	s.consider(i)
}

// pull makes the next data packet of a class from the flow whose turn it is, or returns 0
// when the flow may not send after all.
func (s *part) pull(p *port, class uint8) int32 {
	q := &s.nics[p.node].ready[class]
	i := q.head
	f := &s.flows[i]
	q.head = f.next
	if s.ranked {
		s.nicTails[p.node].left(class, f.precedence, i)
	}
	if q.head == 0 {
		p.ready &^= 1 << class
	}
	f.listed = false
	if f.tx == nil {
		return 0
	}
	if f.stale {
		f.stale = false
		if at := f.tx.Ready(s.now); at > s.now {
			if at < f.wakeAt {
				f.wakeAt = at
				s.agenda.Schedule(at, evWake, i)
			}
			return 0
		}
	}
	seg := f.tx.Send(s.now)
	size := s.frame(seg.Len)
	k := s.pool.get()
	pk := &s.pool.packets[k]
	pk.bits, pk.class, pk.flow, pk.route = uint8(kindData), class, i, f.route+1
	if seg.Probe {
		pk.bits, size = uint8(kindProbe), minFrame
		s.stats.Probes++
	} else {
		s.stats.DataSent++
	}
	pk.psn, pk.size = transport.PSN(seg.Index), size
	if seg.Last {
		pk.set(flagLast)
	}
	if s.pool.wide {
		x := &s.pool.extras[k]
		x.sent = s.now
		if f.needs.INT {
			x.tele = s.tele.get()
		}
	}
	s.armTimer(i)
	// The port is busy until then; if the flow may send by then it keeps its turn.
	free := s.now + p.txTime(size)
	switch at := f.tx.Ready(s.now); {
	case at <= free:
		s.list(i)
	case at < f.wakeAt:
		f.wakeAt = at
		s.agenda.Schedule(at, evWake, i)
	}
	return k
}

// receive takes a packet that has arrived at a host.
func (s *part) receive(p *port, k int32) {
	pk := &s.pool.packets[k]
	i := pk.flow
	f := &s.flows[i]
	switch pk.kind() {
	case kindData:
		s.receiveData(p, f, k)
	case kindProbe:
		pk.turn(kindProbeAck)
		s.answer(p, f, k, pk.psn)
	case kindAck, kindNak, kindProbeAck, kindLastAck:
		s.receiveAck(i, f, k)
	case kindCNP:
		whole, pair := pk.has(flagPair), pairOf(f.src, f.dst)
		s.discard(k)
		if !whole {
			s.congested(i)
			return
		}
		for _, j := range s.pairs[pair] {
			s.congested(j)
		}
	default:
		s.discard(k)
	}
}

func (s *part) receiveData(p *port, f *flow, k int32) {
	pk := &s.pool.packets[k]
	last := pk.has(flagLast)
	deliver, reply, psn := f.rx.OnData(pk.psn, last)
	if deliver {
		s.stats.DataDelivered++
		n := s.mss
		if last {
			if f.spec.Size > 0 {
				n = s.lastPayload(f.spec.Size)
			}
			f.delivered = true
			s.results[pk.flow-1].Delivered = s.now
		}
		s.groups[f.group] += n
	}
	if s.cnpGap > 0 && pk.has(flagCE) {
		s.marked(pk.flow)
		pk = &s.pool.packets[k]
	}
	if reply == transport.Silent {
		s.discard(k)
		return
	}
	switch {
	case reply == transport.Nak:
		pk.turn(kindNak)
		s.stats.Naks++
	case f.delivered:
		pk.turn(kindLastAck)
	default:
		pk.turn(kindAck)
	}
	s.answer(p, f, k, psn)
}

// answer sends a packet back as its own acknowledgement. It keeps its telemetry.
func (s *part) answer(p *port, f *flow, k int32, psn uint32) {
	pk := &s.pool.packets[k]
	if s.pool.wide {
		x := &s.pool.extras[k]
		x.delay = s.now - x.sent
	}
	pk.psn, pk.size, pk.class = psn, uint16(s.ackSize), s.ackClass
	pk.route = f.back + 1
	s.enqueue(p, pk.class, k, pk.size)
	s.kick(s.nicPort(p.node))
}

// congested hands a congestion notification to a flow's law.
func (s *part) congested(i int32) {
	if f := &s.flows[i]; f.tx != nil {
		s.results[i-1].CNPs++
		f.tx.OnEvent(law.CNP, s.now)
		s.armTimer(i)
		s.consider(i)
	}
}

// marked is DCQCN's notification point for a packet of a flow that arrived marked.
func (s *part) marked(i int32) {
	n := &s.flows[i].notify
	waiting := n.Due() != units.MaxTime
	if n.Marked(s.now, s.cnpGap) {
		s.sendCNP(i)
	} else if !waiting {
		s.agenda.Schedule(n.Due(), evNotify, i)
	}
}

// notifyOwed sends the CNP that a window owes which is over, while there is more to come.
func (s *part) notifyOwed(i int32) {
	if f := &s.flows[i]; !f.delivered && f.notify.Expired(s.now, s.cnpGap) {
		s.sendCNP(i)
		s.kick(s.nicPort(f.dst))
	}
}

// sendCNP sends a congestion notification from a flow's receiver to its sender.
func (s *part) sendCNP(i int32) {
	f := &s.flows[i]
	k := s.pool.get()
	pk := &s.pool.packets[k]
	pk.bits, pk.class, pk.size = uint8(kindCNP), s.ackClass, uint16(s.ackSize)
	pk.flow, pk.route = i, f.back+1
	s.stats.CNPs++
	s.enqueue(&s.ports[s.nicPort(f.dst)], pk.class, k, pk.size)
}

func (s *part) receiveAck(i int32, f *flow, k int32) {
	pk := &s.pool.packets[k]
	if f.tx == nil {
		s.discard(k)
		return
	}
	s.feedback = transport.Feedback{PSN: pk.psn, Nak: pk.kind() == kindNak, Probe: pk.kind() == kindProbeAck, CE: pk.has(flagCE)}
	if s.noise != nil {
		s.feedback.Noise = s.noise.Draw(s.chances[f.src].noise)
	}
	if s.pool.wide {
		x := &s.pool.extras[k]
		s.feedback.MaxQD = x.maxQD
		if f.needs.Delay {
			s.feedback.Delay = x.delay + s.feedback.Noise
		}
		if x.tele != 0 {
			s.feedback.INT = s.tele.hops(x.tele)
		}
	}
	f.tx.OnFeedback(&s.feedback, s.now)
	s.discard(k)
	if f.tx.Done() {
		s.finish(i)
		return
	}
	s.armTimer(i)
	s.consider(i)
}

// discard frees a packet and what hangs on it.
func (s *part) discard(k int32) {
	if s.pool.wide && s.pool.extras[k].tele != 0 {
		s.tele.put(s.pool.extras[k].tele)
	}
	s.pool.put(k)
}
