package engine

import (
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/units"
)

// Packet instance types, standard_metadata.instance_type of v1model.
const (
	typeNormal = iota
	typeIngressClone
	typeEgressClone
	typeCoalesced
	typeRecirculated
	typeReplicated
	typeResubmitted
)

// Receive does what Worker.Receive does. Any goroutine may call it.
func (in *Instance) Receive(port uint32, frame []byte, now units.Time) *Packet {
	w := in.Worker()
	return w.Receive(port, frame, now)
}

// Ingress does what Worker.Ingress does. Any goroutine may call it.
func (in *Instance) Ingress(p *Packet, now units.Time, out Out) {
	w := in.Worker()
	w.Ingress(p, now, out)
}

// Egress does what Worker.Egress does. Any goroutine may call it.
func (in *Instance) Egress(p *Packet, now units.Time, out Out) {
	w := in.Worker()
	w.Egress(p, now, out)
}

func micros(t units.Time) uint64 { return uint64(t / units.Microsecond) }

// Ingress runs the parser and the ingress pipeline on a packet. It passes the results to out in
// simple_switch's order: first a clone, then the digest, then the resubmitted packet, or the
// multicast copies, or the packet itself, or nothing.
func (t *Worker) Ingress(p *Packet, now units.Time, out Out) {
	in := t.in
	s := &in.prog.std
	in.advanceClock(now)
	p.now = now
	mu := t.acquire(0, p.IngressPort)
	p.parse()
	p.done(stages.Parse)
	s.parserError.set(p, uint64(p.parserError))
	if p.checksumBad {
		s.checksumError.set(p, 1)
	} else {
		s.checksumError.set(p, 0)
	}
	p.pipeline("ingress", in.prog.code.ingress, in.prog.ingress)
	p.done(stages.Ingress)
	session := in.session(p)
	group := uint16(s.mcast.get(p))
	var replicas []Replica
	if group != 0 {
		replicas = in.groups[group]
	}
	var clone *Packet
	if session != nil && !p.failed {
		clone = p.ingressClone()
	}
	if mu != nil {
		mu.RUnlock()
	}

	if p.failed {
		t.end(p, p.IngressPort, DropAssertion, out)
		return
	}
	if clone != nil {
		p.Note("Cloning packet at ingress")
		clone.toSession(session, out)
	}
	if p.learnList != 0 {
		t.digest(p, out)
	}
	switch spec := uint32(s.spec.get(p)); {
	case p.resubmit != 0:
		p.Note("Resubmitting packet")
		q := p.reenter(p.frame(), p.resubmit, typeResubmitted)
		t.put(p)
		out.Recirculate(q)
	case group != 0:
		p.Note("Multicast requested for packet")
		s.instanceType.set(p, typeReplicated)
		p.clearRequests()
		p.start, p.trunc = p.head, noTrunc
		p.replicate(replicas, out)
	case spec == in.opts.DropPort:
		if p.watch != nil {
			p.logf("Egress port is %d", spec)
			p.logf("Dropping packet at the end of ingress")
		}
		t.end(p, p.IngressPort, DropIngress, out)
	default:
		if p.watch != nil {
			p.logf("Egress port is %d", spec)
		}
		s.instanceType.set(p, typeNormal)
		p.enqueue(spec, out)
	}
}

// session returns the clone session that an action asked for, or nil for none, and clears the
// request.
func (in *Instance) session(p *Packet) *CloneSession {
	if p.cloneSession == 0 {
		return nil
	}
	id := uint16(p.cloneSession & sessionMask)
	p.cloneSession = 0
	return in.sessions[id]
}

// ingressClone makes a clone by parsing the original frame again. Of the metadata it keeps only the
// fields of the field list.
func (p *Packet) ingressClone() *Packet {
	s := &p.in.prog.std
	q := p.cloneFrame(p.frame())
	q.size = p.end - p.start
	s.ingressPort.set(q, uint64(p.IngressPort))
	q.parse()
	clear(q.W[:p.in.prog.layout.Meta])
	q.copyList(p, int(p.cloneList))
	s.instanceType.set(q, typeIngressClone)
	p.cloneList = 0
	return q
}

// copyList copies the fields of a field list from p.
func (q *Packet) copyList(p *Packet, id int) {
	for _, r := range p.in.prog.lists[id] {
		if r.IsValidity() {
			continue
		}
		copy(q.Of(r), p.Of(r))
		if r.F.Variable {
			copy(q.Variable(r), p.Variable(r))
		}
	}
}

// toSession sends a clone to the replicas of its session.
func (p *Packet) toSession(s *CloneSession, out Out) {
	if s.Truncate > 0 {
		p.trunc = s.Truncate
	}
	if s.QueueHint != 0 {
		p.in.prog.std.priority.set(p, uint64(s.QueueHint))
	}
	p.replicate(s.Replicas, out)
}

// digest sends the learning message that an action asked for.
func (p *Packet) digest(out Out) {
	l := p.in.prog.learns[int(p.learnList)]
	p.learnList = 0
	if l == nil {
		return
	}
	fields := make([][]byte, len(l.fields))
	for i, r := range l.fields {
		if r.F.Variable {
			fields[i] = p.Variable(r)
			continue
		}
		fields[i] = fieldBytes(p.Of(r), r.F.Bits)
	}
	out.Digest(l.name, fields)
}

// reenter passes a frame to ingress once more. Of the metadata it keeps only the fields of the field
// list.
func (p *Packet) reenter(frame []byte, list uint32, kind uint64) *Packet {
	s := &p.in.prog.std
	q := p.cloneFrame(frame)
	q.size = len(frame)
	q.copyList(p, int(list))
	s.instanceType.set(q, kind)
	s.packetLength.set(q, uint64(len(frame)))
	return q
}

// enqueue passes the packet to the traffic manager. It drops the packet if its priority names a
// queue that does not exist.
func (p *Packet) enqueue(port uint32, out Out) {
	queue := p.in.prog.std.priority.get(p)
	if queue >= uint64(p.in.opts.Queues) {
		if p.watch != nil {
			p.logf("Dropping packet: there is no queue %d", queue)
		}
		out.Dropped(p.IngressPort, DropQueue)
		p.Free()
		return
	}
	p.EgressPort, p.Queue = port, uint8(queue)
	out.Enqueue(p)
}

// Egress runs the egress pipeline and the deparser on a packet. It passes the results to out:
// first a clone, then nothing, the recirculated packet, or the frame.
func (t *Worker) Egress(p *Packet, now units.Time, out Out) {
	in := t.in
	s := &in.prog.std
	in.advanceClock(now)
	p.now = now
	p.done(stages.TrafficManager)
	s.egressTime.set(p, micros(now))
	if s.queueing {
		s.enqTime.set(p, micros(p.EnqTime))
		s.enqDepth.set(p, uint64(p.EnqDepth))
		deq := max(p.DeqTime, p.EnqTime)
		s.deqDelta.set(p, micros(deq)-micros(p.EnqTime))
		s.deqDepth.set(p, uint64(p.DeqDepth))
		s.qid.set(p, uint64(p.Queue))
	}
	s.egressPort.set(p, uint64(p.EgressPort))
	// Any value but the drop port: a drop in egress sets the field to the drop port.
	s.spec.set(p, uint64(in.opts.DropPort)+1)
	s.packetLength.set(p, uint64(p.size))

	mu := t.acquire(1, p.IngressPort)
	if pc := in.prog.code.egress; pc != 0 || p.watch != nil { // skips a control that is empty
		p.pipeline("egress", pc, in.prog.egress)
	}
	p.done(stages.Egress)
	session := in.session(p)
	if mu != nil {
		mu.RUnlock()
	}

	if p.failed {
		t.end(p, p.EgressPort, DropAssertion, out)
		return
	}
	if session != nil {
		p.Note("Cloning packet at egress")
		p.egressClone().toSession(session, out)
	}
	if uint32(s.spec.get(p)) == in.opts.DropPort {
		p.Note("Dropping packet at the end of egress")
		t.end(p, p.EgressPort, DropEgress, out)
		return
	}
	if p.traced() {
		p.deparseLogged()
	} else {
		p.deparse()
	}
	p.done(stages.Deparse)
	if p.recirculate != 0 {
		p.Note("Recirculating packet")
		q := p.reenter(p.buf[p.head:p.end], p.recirculate, typeRecirculated)
		q.Bytes = q.size
		t.put(p)
		out.Recirculate(q)
		return
	}
	frame := p.payload()
	if p.watch != nil {
		p.logf("Transmitting packet of size %d out of port %d", len(frame), p.EgressPort)
	}
	out.Transmit(p.EgressPort, frame)
	p.done(stages.Send)
	t.put(p)
}

// egressClone copies the packet as it leaves egress, with its headers. Of the metadata it keeps
// only the fields of the field list.
func (p *Packet) egressClone() *Packet {
	q := p.cloneHeaders()
	clear(q.W[:p.in.prog.layout.Meta])
	q.copyList(p, int(p.cloneList))
	p.in.prog.std.instanceType.set(q, typeEgressClone)
	p.cloneList = 0
	return q
}
