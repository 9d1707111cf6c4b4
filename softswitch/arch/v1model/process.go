package v1model

import (
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/units"
)

func micros(t units.Time) uint64 { return uint64(t / units.Microsecond) }

// Receive implements engine.Model.
func (m *model) Receive(p *engine.Packet) {
	m.ingressPort.Set(p, uint64(p.IngressPort))
	m.packetLength.Set(p, uint64(p.Size))
	m.ingressTime.Set(p, micros(p.Now()))
}

// Ingress runs the parser and the ingress pipeline on a packet. It passes the results to out in
// simple_switch's order: first a clone, then the digest, then the resubmitted packet, or the
// multicast copies, or the packet itself, or nothing.
func (m *model) Ingress(t *engine.Worker, p *engine.Packet, out engine.Out) {
	mu := t.Hold(engine.Ingress, p)
	p.Parse(engine.Ingress)
	m.parserError.Set(p, p.ParserError())
	if p.ChecksumBad() {
		m.checksumError.Set(p, 1)
	} else {
		m.checksumError.Set(p, 0)
	}
	p.Run(engine.Ingress)
	session := m.session(t, p)
	group := m.mcast.Get(p)
	var replicas []engine.Replica
	if group != 0 {
		replicas = t.Group(group)
	}
	var clone *engine.Packet
	if session != nil && !p.Failed() {
		clone = m.ingressClone(p)
	}
	if mu != nil {
		mu.RUnlock()
	}

	if p.Failed() {
		t.Drop(p, p.IngressPort, engine.DropAssertion, out)
		return
	}
	if clone != nil {
		p.Note("Cloning packet at ingress")
		m.toSession(clone, session, out)
	}
	if list := m.request[learnList].Get(p); list != 0 {
		m.request[learnList].Set(p, 0)
		t.Digest(p, list, out)
	}
	spec := uint32(m.spec.Get(p))
	if list := m.request[resubmit].Get(p); list != 0 {
		p.Note("Resubmitting packet")
		t.Recirculate(p, m.reenter(p, p.Frame(), list, typeResubmitted), out)
		return
	}
	if group != 0 {
		p.Note("Multicast requested for packet")
		m.instanceType.Set(p, typeReplicated)
		for _, r := range m.request {
			r.Set(p, 0)
		}
		p.ForgetFrame()
		p.Replicate(replicas, m.rid, m.priority.Get(p), out)
		return
	}
	if p.Watched() {
		p.Logf("Egress port is %d", spec)
	}
	if spec == p.Options().DropPort {
		p.Note("Dropping packet at the end of ingress")
		t.Drop(p, p.IngressPort, engine.DropIngress, out)
		return
	}
	m.instanceType.Set(p, typeNormal)
	p.Enqueue(spec, m.priority.Get(p), out)
}

// session returns the clone session that an action asked for, or nil for none, and clears the
// request.
func (m *model) session(t *engine.Worker, p *engine.Packet) *engine.CloneSession {
	id := m.request[cloneSession].Get(p)
	if id == 0 {
		return nil
	}
	m.request[cloneSession].Set(p, 0)
	return t.Session(id &^ cloneValid)
}

// ingressClone makes a clone by parsing the original frame again. Of the metadata it keeps only the
// fields of the field list.
func (m *model) ingressClone(p *engine.Packet) *engine.Packet {
	q := p.CloneFrame(p.Frame())
	m.ingressPort.Set(q, uint64(p.IngressPort))
	q.Parse(engine.Ingress)
	q.ClearMetadata()
	m.keep(q, p)
	m.instanceType.Set(q, typeIngressClone)
	return q
}

// keep copies the fields that the clone request of p names, and clears the request.
func (m *model) keep(q, p *engine.Packet) {
	q.CopyFields(p, m.request[cloneList].Get(p))
	m.request[cloneList].Set(p, 0)
}

// toSession sends a clone to the replicas of its session.
func (m *model) toSession(p *engine.Packet, s *engine.CloneSession, out engine.Out) {
	if s.QueueHint != 0 {
		m.priority.Set(p, uint64(s.QueueHint))
	}
	p.ToSession(s, m.rid, m.priority.Get(p), out)
}

// reenter passes a frame to ingress once more. Of the metadata it keeps only the fields of the field
// list.
func (m *model) reenter(p *engine.Packet, frame []byte, list, kind uint64) *engine.Packet {
	q := p.CloneFrame(frame)
	q.CopyFields(p, list)
	m.instanceType.Set(q, kind)
	m.packetLength.Set(q, uint64(len(frame)))
	return q
}

// Egress runs the egress pipeline and the deparser on a packet. It passes the results to out:
// first a clone, then nothing, the recirculated packet, or the frame.
func (m *model) Egress(t *engine.Worker, p *engine.Packet, out engine.Out) {
	drop := p.Options().DropPort
	m.egressTime.Set(p, micros(p.Now()))
	if m.enqTime.Exists() || m.deqDelta.Exists() || m.enqDepth.Exists() || m.deqDepth.Exists() {
		m.enqTime.Set(p, micros(p.EnqTime))
		m.enqDepth.Set(p, uint64(p.EnqDepth))
		m.deqDelta.Set(p, micros(max(p.DeqTime, p.EnqTime))-micros(p.EnqTime))
		m.deqDepth.Set(p, uint64(p.DeqDepth))
		m.qid.Set(p, uint64(p.Queue))
	}
	m.egressPort.Set(p, uint64(p.EgressPort))
	// Any value but the drop port: a drop in egress sets the field to the drop port.
	m.spec.Set(p, uint64(drop)+1)
	m.packetLength.Set(p, uint64(p.Size))

	mu := t.Hold(engine.Egress, p)
	p.Run(engine.Egress)
	session := m.session(t, p)
	if mu != nil {
		mu.RUnlock()
	}

	if p.Failed() {
		t.Drop(p, p.EgressPort, engine.DropAssertion, out)
		return
	}
	if session != nil {
		p.Note("Cloning packet at egress")
		m.toSession(m.egressClone(p), session, out)
	}
	if uint32(m.spec.Get(p)) == drop {
		p.Note("Dropping packet at the end of egress")
		t.Drop(p, p.EgressPort, engine.DropEgress, out)
		return
	}
	p.Deparse(engine.Egress)
	if list := m.request[recirculate].Get(p); list != 0 {
		p.Note("Recirculating packet")
		q := m.reenter(p, p.Deparsed(), list, typeRecirculated)
		q.Bytes = q.Size
		t.Recirculate(p, q, out)
		return
	}
	t.Transmit(p, out)
}

// egressClone copies the packet as it leaves egress, with its headers. Of the metadata it keeps
// only the fields of the field list.
func (m *model) egressClone(p *engine.Packet) *engine.Packet {
	q := p.CloneHeaders()
	q.ClearMetadata()
	m.keep(q, p)
	m.instanceType.Set(q, typeEgressClone)
	return q
}
