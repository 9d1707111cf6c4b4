package sim

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// nic is the sending side of a host's port: for each class a list of the flows that may send, served round robin.
type nic struct {
	ready [NumClasses]struct{ head, tail int32 }
}

// nicOf returns the port that a flow's sender sends by. answeredBy returns the port that the receiver sends
// answers by.
func (s *Sim) nicOf(f *flow) int32      { return s.routes[f.route] }
func (s *Sim) answeredBy(f *flow) int32 { return s.routes[f.back] }

// list puts a flow into its port's list of ready flows, behind the flows of its precedence.
func (s *partition) list(i int32) {
	f := &s.flows[i]
	f.listed = true
	nic := s.nicOf(f)
	q := &s.nics[nic].ready[f.class]
	s.ports[nic].ready |= 1 << f.class
	next := &q.head
	switch {
	case q.head == 0:
	case s.flows[q.tail].precedence >= f.precedence:
		next = &s.flows[q.tail].next
	default:
		for s.flows[*next].precedence >= f.precedence {
			next = &s.flows[*next].next
		}
	}
	f.next, *next = *next, i
	if f.next == 0 {
		q.tail = i
	}
}

// unlist takes a flow off the list of a port that the flow no longer uses.
func (s *partition) unlist(i, nic int32) {
	s.flows[i].listed = false
	for class := range s.nics[nic].ready {
		q := &s.nics[nic].ready[class]
		before := int32(0)
		for at := q.head; at != 0; before, at = at, s.flows[at].next {
			if at != i {
				continue
			}
			next := s.flows[i].next
			if before == 0 {
				q.head = next
			} else {
				s.flows[before].next = next
			}
			if next == 0 {
				q.tail = before
			}
			if q.head == 0 {
				s.ports[nic].ready &^= 1 << class
			}
			return
		}
	}
}

// scheduleFlow lists a flow that may send now, and wakes one that may send later.
func (s *partition) scheduleFlow(i int32) {
	f := &s.flows[i]
	if f.listed {
		f.stale = true
		return
	}
	if f.tx == nil {
		return
	}
	switch at := f.tx.Ready(s.now); {
	case at <= s.now:
		s.list(i)
		s.schedulePort(s.nicOf(f))
	default:
		s.wakeFlow(i, at)
	}
}

// wakeFlow makes sure that a flow is examined no later than a time.
func (s *partition) wakeFlow(i int32, at units.Time) {
	if f := &s.flows[i]; at < f.wakeAt {
		f.wakeAt = at
		s.events.schedule(at, evWake, i)
	}
}

// wake examines a flow again at the time that its pacing gave.
func (s *partition) wake(i int32) {
	f := &s.flows[i]
	if f.wakeAt != s.now {
		return // an earlier wake has overtaken this one
	}
	f.wakeAt = units.MaxTime
	s.scheduleFlow(i)
}

// armTimer makes sure that a timer of the flow fires by its deadline. If the deadline moves later, the
// earlier event only checks it again.
func (s *partition) armTimer(i int32) {
	f := &s.flows[i]
	if at := f.tx.Deadline(); at < f.timerAt {
		f.timerAt = at
		s.events.schedule(at, evTimer, i)
	}
}

func (s *partition) timer(i int32) {
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
	s.scheduleFlow(i)
}

// pull makes the next data packet of a class from the flow whose turn it is. It returns nil if that
// flow may not send after all.
func (s *partition) pull(p *port, class uint8) *packet {
	q := &s.nics[s.nodes[p.node].first+int32(p.local)].ready[class]
	i := q.head
	f := &s.flows[i]
	q.head = f.next
	if q.head == 0 {
		p.ready &^= 1 << class
	}
	f.listed = false
	if f.tx == nil {
		return nil
	}
	if f.stale {
		f.stale = false
		if at := f.tx.Ready(s.now); at > s.now {
			s.wakeFlow(i, at)
			return nil
		}
	}
	seg := f.tx.Send(s.now)
	size := s.frame(seg.Len)
	kd := kindData
	if seg.Probe {
		kd, size = kindProbe, minFrame
		s.stats.Probes++
	} else {
		s.stats.DataSent++
	}
	e := &s.pulled
	e.what, e.flow, e.route, e.psn, e.extra = pack(size, class, kd), i, f.route, transport.PSN(seg.Index), 0
	if seg.Last {
		e.set(flagLast)
	}
	if s.wide {
		e.extra = s.extras.get()
		x := &s.extras.all[e.extra]
		*x = extra{sent: s.now}
		if f.needs.INT {
			x.tele = s.tele.get()
			s.tele.all[x.tele].n = 0
		}
	}
	s.alloc()
	s.armTimer(i)
	// The port is busy until then. A flow that may send by then keeps its turn.
	free := s.now + p.txTime(size)
	switch at := f.tx.Ready(s.now); {
	case at <= free:
		s.list(i)
	default:
		s.wakeFlow(i, at)
	}
	return e
}

// receive handles a packet that has arrived at a host.
func (s *partition) receive(e *packet) {
	i := e.flow
	f := &s.flows[i]
	switch e.kind() {
	case kindData:
		s.receiveData(f, e)
	case kindProbe:
		s.answer(f, e, e.number(), kindProbeAck)
	case kindAck, kindNak, kindProbeAck, kindLastAck:
		s.receiveAck(f, e)
	case kindCNP:
		s.free(e)
		if !e.has(flagPair) {
			s.congested(i)
			return
		}
		for _, j := range s.pairs[pairOf(f.src, f.dst)] {
			s.congested(j)
		}
	default:
		s.free(e)
	}
}

func (s *partition) receiveData(f *flow, e *packet) {
	last := e.has(flagLast)
	deliver, reply, psn := f.rx.OnData(e.number(), last)
	if deliver {
		s.stats.DataDelivered++
		n := s.mss
		if last {
			if f.spec.Size > 0 {
				n = s.lastPayload(f.spec.Size)
			}
			f.delivered = true
			s.results[e.flow-1].Delivered = s.now
		}
		s.groups[f.group] += n
	}
	if s.cnpGap > 0 && e.has(flagCE) {
		s.marked(e.flow)
	}
	if reply == transport.Silent {
		s.free(e)
		return
	}
	kd := kindAck
	switch {
	case reply == transport.Nak:
		kd = kindNak
		s.stats.Naks++
	case f.delivered:
		kd = kindLastAck
	}
	s.answer(f, e, psn, kd)
}

// answer turns a data packet into its own acknowledgement, which keeps its flags and telemetry, and sends it back.
func (s *partition) answer(f *flow, e *packet, psn uint32, kd kind) {
	if e.extra != 0 {
		x := &s.extras.all[e.extra]
		x.delay = s.now - x.sent
	}
	e.psn = e.psn>>flagShift<<flagShift | psn
	e.what, e.route = pack(uint16(s.ackSize), s.ackClass, kd), f.back
	s.enqueue(&s.ports[s.answeredBy(f)], s.ackClass, e, 0)
	s.schedulePort(s.answeredBy(f))
}

// congested passes a CNP to a flow's law.
func (s *partition) congested(i int32) {
	if f := &s.flows[i]; f.tx != nil {
		s.results[i-1].CNPs++
		f.tx.OnEvent(law.CNP, s.now)
		s.armTimer(i)
		s.scheduleFlow(i)
	}
}

// marked is DCQCN's notification point. It handles a packet of a flow that arrived with an ECN mark.
func (s *partition) marked(i int32) {
	n := &s.flows[i].notify
	waiting := n.Due() != units.MaxTime
	if n.Marked(s.now, s.cnpGap) {
		s.makeCNP(i)
	} else if !waiting {
		s.events.schedule(n.Due(), evNotify, i)
	}
}

// notifyOwed sends the CNP deferred by a window that has ended, unless the flow is complete.
func (s *partition) notifyOwed(i int32) {
	if f := &s.flows[i]; !f.delivered && f.notify.Expired(s.now, s.cnpGap) {
		s.makeCNP(i)
		s.schedulePort(s.answeredBy(f))
	}
}

// makeCNP starts making a CNP. The receiver's NIC takes cnpDelay for it.
func (s *partition) makeCNP(i int32) {
	if s.cnpDelay > 0 {
		s.events.schedule(s.now+s.cnpDelay, evMade, i)
		return
	}
	s.sendCNP(i)
}

// sendCNP sends a congestion notification from a flow's receiver to its sender.
func (s *partition) sendCNP(i int32) {
	f := &s.flows[i]
	s.alloc()
	s.stats.CNPs++
	e := packet{what: pack(uint16(s.ackSize), s.ackClass, kindCNP), flow: i, route: f.back}
	s.enqueue(&s.ports[s.answeredBy(f)], s.ackClass, &e, 0)
}

func (s *partition) receiveAck(f *flow, e *packet) {
	i := e.flow
	if f.tx == nil {
		s.free(e)
		return
	}
	kd := e.kind()
	s.feedback = transport.Feedback{PSN: e.number(), Nak: kd == kindNak, Probe: kd == kindProbeAck, CE: e.has(flagCE)}
	if s.noise != nil {
		s.feedback.Noise = s.noise.Draw(s.chances[f.src].noise)
	}
	if e.extra != 0 {
		x := &s.extras.all[e.extra]
		s.feedback.MaxQD = x.maxQD
		if f.needs.Delay {
			s.feedback.Delay = x.delay + s.feedback.Noise
		}
		if x.tele != 0 {
			t := &s.tele.all[x.tele]
			s.feedback.INT = t.hop[:t.n]
		}
	}
	f.tx.OnFeedback(&s.feedback, s.now)
	s.free(e)
	if f.tx.Done() {
		s.finish(i)
		return
	}
	s.armTimer(i)
	s.scheduleFlow(i)
}

// alloc counts a new packet.
func (s *partition) alloc() {
	s.live++
	s.peak = max(s.peak, s.live)
}

// free ends a packet and frees its extra and its telemetry record.
func (s *partition) free(e *packet) {
	s.live--
	if e.extra != 0 {
		if t := s.extras.all[e.extra].tele; t != 0 {
			s.tele.put(t)
		}
		s.extras.put(e.extra)
	}
}
