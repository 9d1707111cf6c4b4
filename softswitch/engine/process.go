package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/units"
)

// Receive does what Worker.Receive does. Any goroutine may call it.
func (in *Instance) Receive(port uint32, frame []byte, now units.Time) *Packet {
	return in.plain.Receive(port, frame, now)
}

// Ingress does what Worker.Ingress does. Any goroutine may call it.
func (in *Instance) Ingress(p *Packet, now units.Time, out Out) { in.plain.Ingress(p, now, out) }

// Egress does what Worker.Egress does. Any goroutine may call it.
func (in *Instance) Egress(p *Packet, now units.Time, out Out) { in.plain.Egress(p, now, out) }

// Ingress takes a packet through the ingress pass of the program's architecture, which passes the
// results to out.
func (t *Worker) Ingress(p *Packet, now units.Time, out Out) {
	t.in.advanceClock(now)
	p.now = now
	t.in.prog.model.Ingress(t, p, out)
}

// Egress takes a packet through the egress pass of the program's architecture, which passes the
// results to out.
func (t *Worker) Egress(p *Packet, now units.Time, out Out) {
	t.in.advanceClock(now)
	p.now = now
	p.done(stages.TrafficManager)
	t.in.prog.model.Egress(t, p, out)
}

// The methods below are the steps of a Model. Packet.Parse and Packet.Deparse are steps too. Parse,
// Run, Group and Session need the lock of the pass, see Hold; an Out must be called without it.

// Hold acquires the lock of a packet's pass, which the caller releases with RUnlock. It returns nil
// within a batch, where the worker holds it already.
func (t *Worker) Hold(pass Pass, p *Packet) *sync.RWMutex {
	if t.mu != nil {
		return nil
	}
	mu := t.in.reader(uint32(pass), p.IngressPort)
	mu.RLock()
	return mu
}

// Run runs the pipeline of a pass.
func (p *Packet) Run(pass Pass) {
	if p.in.prog.passes[pass].pc != 0 || p.watch != nil { // skips a control that is empty
		p.pipeline(pass) // a function of its own, so that this one is inlined
	}
}

// NewFrame makes the deparser's output the frame of the next parser. It truncates the frame if an action asked for
// that.
func (p *Packet) NewFrame() {
	l := p.in.prog.layout
	clear(p.W[l.Meta:l.Words])
	p.end = p.head + min(p.end-p.head, p.trunc)
	p.start, p.trunc, p.nPlaced = p.head, noTrunc, -1
}

// Group returns the replicas of a multicast group, nil for none.
func (t *Worker) Group(id uint64) []Replica {
	if id > 0xffff {
		return nil
	}
	return t.in.groups[uint16(id)]
}

// Session returns a clone session, nil for none.
func (t *Worker) Session(id uint64) *CloneSession {
	if id > maxSession {
		return nil
	}
	return t.in.sessions[uint16(id)]
}

// Recirculate ends packet p and passes copy to out, which sends it back to ingress.
func (t *Worker) Recirculate(p, copy *Packet, out Out) {
	t.put(p)
	out.Recirculate(copy)
}

// Transmit passes the deparser's output to out as a frame, and ends the packet.
func (t *Worker) Transmit(p *Packet, out Out) {
	frame := p.payload()
	if p.watch == nil {
		out.Transmit(p.EgressPort, frame)
	} else {
		p.Logf("Transmitting packet of size %d out of port %d", len(frame), p.EgressPort)
		out.Transmit(p.EgressPort, frame)
		p.done(stages.Send)
	}
	t.put(p)
}

// CopyFields copies the fields of a field list of the program from p.
func (q *Packet) CopyFields(p *Packet, list uint64) {
	for _, r := range p.in.prog.lists[int(list)] {
		if r.IsValidity() {
			continue
		}
		copy(q.Field(r), p.Field(r))
		if r.F.Variable {
			copy(q.Variable(r), p.Variable(r))
		}
	}
}

// ClearMetadata sets all metadata to 0, scratch included.
func (p *Packet) ClearMetadata() { clear(p.W[:p.in.prog.layout.Meta]) }

// digest sends the packet's values of a learn list's fields to the controller.
func (p *Packet) digest(list uint64, out Out) {
	l := p.in.prog.learns[int(list)]
	if l == nil {
		return
	}
	fields := make([][]byte, len(l.fields))
	for i, r := range l.fields {
		if r.F.Variable {
			fields[i] = p.Variable(r)
			continue
		}
		fields[i] = fieldBytes(p.Field(r), r.F.Bits)
	}
	out.Digest(cmp.Or(p.in.opts.LearnNames[int(list)], l.name), fields)
}

// Enqueue passes the packet to the traffic manager. It drops the packet if there is no such queue.
func (p *Packet) Enqueue(port uint32, queue uint64, out Out) {
	if queue >= uint64(p.in.opts.Queues) {
		if p.watch != nil {
			p.Logf("Dropping packet: there is no queue %d", queue)
		}
		out.Dropped(p.IngressPort, DropQueue)
		p.Free()
		return
	}
	p.EgressPort, p.Queue = port, uint8(queue)
	if a := p.in.prog.arch; port != 0 && port == a.RecirculatePort {
		out.Recirculate(p)
		return
	} else if port != 0 && port == a.CPUPort && p.in.opts.CPUPort != 0 {
		p.EgressPort = p.in.opts.CPUPort
	}
	out.Enqueue(p)
}

// ToSession enqueues a clone for the replicas of its session, truncated if the session says so.
// instance and queue are as in Replicate.
func (p *Packet) ToSession(s *CloneSession, instance Field, queue uint64, out Out) {
	if s.Truncate > 0 {
		p.trunc = s.Truncate
	}
	p.Replicate(s.Replicas, instance, queue, out)
}

// Replicate enqueues one copy of p for every replica. The last copy is p itself. Each copy has the
// replica's instance in a field.
func (p *Packet) Replicate(rs []Replica, instance Field, queue uint64, out Out) {
	if len(rs) == 0 {
		p.Note("Dropping packet: the group has no replica")
		out.Dropped(p.IngressPort, DropGroup)
		p.Free()
		return
	}
	for i := range rs {
		q := p
		if i < len(rs)-1 {
			q = p.CloneHeaders()
			q.trunc = p.trunc
		}
		instance.Set(q, uint64(rs[i].Instance))
		if q.watch != nil {
			q.Logf("Replicating packet on port %d", rs[i].Port)
		}
		q.Enqueue(rs[i].Port, queue, out)
	}
}

// Drop is the reason for which a packet ended in the engine.
type Drop uint8

// The reasons. A packet does not count as dropped if its clones, or its resubmitted or recirculated copies, go on.
const (
	DropIngress   Drop = iota // the program dropped it at the end of ingress
	DropEgress                // the program dropped it at the end of egress
	DropAssertion             // an assert or assume failed
	DropQueue                 // the program chose a queue that the port does not have
	DropGroup                 // the multicast group, or the clone session, has no replica
	Drops
)

func (d Drop) String() string {
	return [...]string{"ingress", "egress", "assertion", "no-queue", "no-replica"}[d]
}

// Drop reports to out that a packet ended, and ends it. port is the port that the packet arrived on, or in egress
// the port that it was about to leave by.
func (t *Worker) Drop(p *Packet, port uint32, why Drop, out Out) {
	out.Dropped(port, why)
	t.put(p)
}

// SetMulticastGroup creates or replaces a multicast group, which yields one copy per
// replica, in order. Group 0 means no multicast.
func (in *Instance) SetMulticastGroup(id uint16, r []Replica) error {
	if id == 0 {
		return fmt.Errorf("multicast group 0 stands for no multicast, allowed are 1 to 65535: %w", ErrInvalid)
	}
	r = slices.Clone(r)
	in.lock()
	in.groups[id] = r // packets in progress keep the old slice
	in.unlock()
	return nil
}

// DeleteMulticastGroup removes a group.
func (in *Instance) DeleteMulticastGroup(id uint16) error {
	return deleteID(in, "multicast group", in.groups, id)
}

func deleteID[V any](in *Instance, kind string, m map[uint16]V, id uint16) error {
	in.lock()
	defer in.unlock()
	if _, ok := m[id]; !ok {
		return fmt.Errorf("%s %d: %w", kind, id, ErrNotFound)
	}
	delete(m, id)
	return nil
}

// maxSession is the highest number of a clone session.
const maxSession = 1<<15 - 1

// SetCloneSession creates or replaces a clone session.
func (in *Instance) SetCloneSession(id uint16, s CloneSession) error {
	if id > maxSession {
		return fmt.Errorf("clone session %d, allowed are 0 to %d: %w", id, maxSession, ErrInvalid)
	}
	if s.Truncate < 0 {
		return fmt.Errorf("clone session %d truncates to %d bytes: %w", id, s.Truncate, ErrInvalid)
	}
	s.Replicas = slices.Clone(s.Replicas)
	in.lock()
	in.sessions[id] = &s
	in.unlock()
	return nil
}

// DeleteCloneSession removes a session.
func (in *Instance) DeleteCloneSession(id uint16) error {
	return deleteID(in, "clone session", in.sessions, id)
}
