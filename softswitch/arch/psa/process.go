package psa

import (
	"math/bits"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/units"
)

// number returns the number that the program uses for a port: portCPU for the CPU port, the port's own otherwise.
func number(p *engine.Packet, port uint32) uint64 {
	if cpu := p.Options().CPUPort; cpu != 0 && port == cpu {
		return portCPU
	}
	return uint64(port)
}

// Receive implements engine.Model.
func (m *model) Receive(p *engine.Packet) {
	m.in.port.Set(p, number(p, p.IngressPort))
	m.in.path.Set(p, pathNormal)
}

// Ingress takes a packet through the ingress parser, pipeline and deparser. It passes the results to
// out in psa_switch's order: first a clone of the packet as it arrived, then nothing, the
// resubmitted packet, the multicast copies or the packet.
func (m *model) Ingress(t *engine.Worker, p *engine.Packet, out engine.Out) {
	if p.EgressPort == portRecirculate { // the packet has been through ingress
		m.Egress(t, p, out)
		return
	}
	mu := t.Hold(engine.Ingress, p)
	m.in.time.Set(p, uint64(p.Now()/units.Microsecond))
	p.Parse(engine.Ingress)
	m.in.portCopy.Set(p, m.in.port.Get(p))
	m.in.pathCopy.Set(p, m.in.path.Get(p))
	m.in.err.Set(p, p.ParserError())
	m.in.class.Set(p, 0)
	m.in.clone.Set(p, 0)
	m.in.drop.Set(p, 1)
	m.in.resubmit.Set(p, 0)
	m.in.group.Set(p, 0)
	p.Run(engine.Ingress)
	session := session(t, p, m.in.clone, m.in.session)
	drop, resubmit, group, class := m.in.drop.Get(p) != 0, m.in.resubmit.Get(p) != 0, m.in.group.Get(p), m.in.class.Get(p)
	replicas := t.Group(group)
	if mu != nil {
		mu.RUnlock()
	}

	if p.Failed() {
		t.Drop(p, p.IngressPort, engine.DropAssertion, out)
		return
	}
	if session != nil {
		p.Note("Cloning packet at ingress")
		m.toSession(p.CloneFrame(p.Frame()), session, pathCloneI2E, out)
	}
	if drop {
		p.Note("Dropping packet at the end of ingress")
		t.Drop(p, p.IngressPort, engine.DropIngress, out)
		return
	}
	if resubmit {
		p.Note("Resubmitting packet")
		t.Recirculate(p, m.again(p, p.Frame(), m.in.port.Get(p), pathResubmit), out)
		return
	}
	p.Deparse(engine.Ingress)
	m.digest(t, p, out)
	p.NewFrame()
	m.eg.class.Set(p, class)
	if group != 0 {
		p.Note("Multicast requested for packet")
		m.eg.path.Set(p, pathMulticast)
		p.Replicate(replicas, m.eg.instance, queue(p, class), out)
		return
	}
	m.eg.path.Set(p, pathUnicast)
	m.eg.instance.Set(p, 0)
	port := uint32(m.in.to.Get(p))
	if p.Watched() {
		p.Logf("Egress port is %d", port)
	}
	p.Enqueue(port, queue(p, class), out)
}

// queue returns the queue for a class of service.
func queue(p *engine.Packet, class uint64) uint64 {
	return min(class, uint64(p.Options().Queues)-1)
}

// session returns the clone session that the program asks for, nil for none.
func session(t *engine.Worker, p *engine.Packet, clone, id engine.Field) *engine.CloneSession {
	if clone.Get(p) == 0 {
		return nil
	}
	return t.Session(id.Get(p))
}

// toSession sends a clone to the replicas of its session.
func (m *model) toSession(q *engine.Packet, s *engine.CloneSession, path uint64, out engine.Out) {
	class := uint64(s.QueueHint)
	m.eg.path.Set(q, path)
	m.eg.class.Set(q, class)
	q.ToSession(s, m.eg.instance, queue(q, class), out)
}

// again returns a packet that passes ingress again with the given frame.
func (m *model) again(p *engine.Packet, frame []byte, port, path uint64) *engine.Packet {
	q := p.CloneFrame(frame)
	m.in.port.Set(q, port)
	m.in.path.Set(q, path)
	return q
}

// digest sends the digests that the packet has packed, in the order of their learn lists.
func (m *model) digest(t *engine.Worker, p *engine.Packet, out engine.Out) {
	packed := m.packed.Get(p)
	m.packed.Set(p, 0)
	for ; packed != 0; packed &= packed - 1 {
		t.Digest(p, uint64(bits.TrailingZeros64(packed)), out)
	}
}

// Egress takes a packet through the egress parser, pipeline and deparser. It passes the results to
// out: first a clone of the packet as it leaves, then nothing, the recirculated packet or the frame.
func (m *model) Egress(t *engine.Worker, p *engine.Packet, out engine.Out) {
	port := number(p, p.EgressPort)
	mu := t.Hold(engine.Egress, p)
	m.eg.port.Set(p, port)
	m.eg.time.Set(p, uint64(p.Now()/units.Microsecond))
	p.Parse(engine.Egress)
	m.eg.portCopy.Set(p, port)
	m.eg.deparserPort.Set(p, port)
	m.eg.pathCopy.Set(p, m.eg.path.Get(p))
	m.eg.err.Set(p, p.ParserError())
	m.eg.clone.Set(p, 0)
	m.eg.drop.Set(p, 0)
	p.Run(engine.Egress)
	session := session(t, p, m.eg.clone, m.eg.session)
	drop := m.eg.drop.Get(p) != 0
	if mu != nil {
		mu.RUnlock()
	}

	if p.Failed() {
		t.Drop(p, p.EgressPort, engine.DropAssertion, out)
		return
	}
	p.Deparse(engine.Egress)
	m.digest(t, p, out)
	if session != nil {
		p.Note("Cloning packet after egress")
		m.toSession(p.CloneFrame(p.Deparsed()), session, pathCloneE2E, out)
	}
	switch {
	case drop:
		p.Note("Dropping packet at the end of egress")
		t.Drop(p, p.EgressPort, engine.DropEgress, out)
	case p.EgressPort == portRecirculate:
		p.Note("Recirculating packet")
		t.Recirculate(p, m.again(p, p.Deparsed(), portRecirculate, pathRecirculate), out)
	default:
		t.Transmit(p, out)
	}
}
