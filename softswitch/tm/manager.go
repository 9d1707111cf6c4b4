package tm

import (
	"fmt"
	"math"
	"slices"

	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/units"
)

// Manager is a switch's traffic manager. It is owned by the goroutine that runs the switch.
//
// For each packet the caller calls Enqueue; when Next is due it calls Dequeue, runs the
// packet's egress, and reports with OnTransmit what goes out:
//
//	for d, ok := m.Dequeue(now); ok; d, ok = m.Dequeue(now) {
//		for _, frame := range egress(d.Packet, d.At) {
//			finish := m.OnTransmit(units.Bytes(len(frame)))
//		}
//		m.Complete()
//	}
//
// Before the caller enqueues a packet it dequeues everything that is due by then. Otherwise packets
// that should have left count against the limits.
type Manager struct {
	config Config
	ports  map[uint32]*port
	low    [512]*port       // ports below 512, by number: all ports of v1model, and faster than the map
	rest   *port            // takes packets whose egress port does not exist
	heap   heap.Heap[*port] // ports with something to send, see newDepartures
	added  int
	busy   *port   // the port between Dequeue and Complete
	strict bool    // every queue has a level of its own
	shares []Share // shares in force
}

// Dequeued is a packet that leaves its queue.
type Dequeued struct {
	Packet *engine.Packet
	Port   uint32     // a port of the manager; Packet.EgressPort may not exist
	Known  bool       // whether the egress port exists
	Epoch  uint32     // the epoch given to Enqueue
	At     units.Time // when the packet leaves: the later of its enqueue and the previous finish
}

// New returns a manager without ports.
func New(c Config) (*Manager, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{config: c, ports: map[uint32]*port{}, heap: newDepartures()}
	m.rest = newPort(0, math.MaxInt, 0, &m.config)
	return m, m.SetSchedule(nil)
}

// Queues returns the number of queues of a port.
func (m *Manager) Queues() int { return m.config.Queues }

// AddPort adds a port with a rate; 0 is unlimited.
func (m *Manager) AddPort(id uint32, rate units.Rate) error {
	if _, ok := m.ports[id]; ok {
		return fmt.Errorf("port %d exists already", id)
	}
	if err := validRate(rate); err != nil {
		return fmt.Errorf("port %d: %w", id, err)
	}
	m.added++
	p := newPort(id, m.added, rate, &m.config)
	p.schedule(m.shares)
	m.ports[id] = p
	if id < uint32(len(m.low)) {
		m.low[id] = p
	}
	return nil
}

// Ports returns the ports' numbers in ascending order.
func (m *Manager) Ports() []uint32 {
	ids := make([]uint32, 0, len(m.ports))
	for id := range m.ports {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (m *Manager) port(id uint32) (*port, error) {
	p, ok := m.ports[id]
	if !ok {
		return nil, fmt.Errorf("port %d does not exist: want one of %v", id, m.Ports())
	}
	return p, nil
}

// Rate returns a port's rate; 0 is unlimited. It also returns 0 when there is no such port.
func (m *Manager) Rate(id uint32) units.Rate {
	if p, ok := m.ports[id]; ok {
		return p.rate
	}
	return 0
}

// SetRate changes a port's rate from now on; 0 is unlimited. The rest of the frame on the wire is
// sent at the new rate.
func (m *Manager) SetRate(id uint32, rate units.Rate, now units.Time) error {
	p, err := m.port(id)
	if err != nil {
		return err
	}
	if err := validRate(rate); err != nil {
		return fmt.Errorf("port %d: %w", id, err)
	}
	if p.free > now {
		left := p.rate.BytesIn(p.free - now)
		p.free = now
		if rate > 0 {
			p.free = plus(now, rate.TxTime(left))
		}
	}
	p.rate = rate
	m.place(p)
	return nil
}

// SetSchedule replaces the schedule of all ports, with a share for each queue; nil is that of the Config. DWRR begins anew.
func (m *Manager) SetSchedule(shares []Share) error {
	c := m.config
	if shares != nil {
		c.Schedule = shares
	}
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	for _, p := range m.ports {
		p.schedule(c.Schedule)
	}
	m.rest.schedule(c.Schedule)
	m.strict, m.shares = len(m.rest.groups) == c.Queues, c.Schedule
	return nil
}

// SetLimit changes the limit of one queue. Packets that are queued already stay, even beyond the
// new limit.
func (m *Manager) SetLimit(id uint32, q int, l Limit) error {
	p, err := m.port(id)
	if err != nil {
		return err
	}
	if q < 0 || q >= len(p.queues) {
		return fmt.Errorf("port %d has no queue %d: want 0 to %d", id, q, len(p.queues)-1)
	}
	if err := l.validate(); err != nil {
		return fmt.Errorf("port %d, queue %d: %w", id, q, err)
	}
	p.queues[q].limit = l
	return nil
}

// Enqueue puts a packet into the queue of its EgressPort and Queue at time now. It fills in the
// packet's enqueue time and depth: the number of packets in the queue before it, as in BMv2. The
// packet's Dequeued carries epoch. When the queue is full or does not exist, Enqueue counts the
// drop and returns false, and the caller keeps the packet. now never decreases.
func (m *Manager) Enqueue(pkt *engine.Packet, epoch uint32, now units.Time) bool {
	var p *port
	if pkt.EgressPort < uint32(len(m.low)) {
		p = m.low[pkt.EgressPort]
	} else {
		p = m.ports[pkt.EgressPort]
	}
	if p == nil {
		p = m.rest
	}
	if int(pkt.Queue) >= len(p.queues) {
		return false
	}
	q := &p.queues[pkt.Queue]
	size := units.Bytes(pkt.Bytes)
	if !q.admits(size) {
		q.stats.Dropped.add(size)
		return false
	}
	pkt.EnqTime = now
	pkt.EnqDepth = uint32(q.Len())
	p.push(int(pkt.Queue), slot{p: pkt, enq: now, bytes: size, epoch: epoch})
	q.stats.Enqueued.add(size)
	q.stats.MaxPackets = max(q.stats.MaxPackets, q.Len())
	q.stats.MaxBytes = max(q.stats.MaxBytes, q.bytes)
	if p.total == 1 || p.pausing != 0 {
		m.place(p) // only an empty or paused port's departure can become earlier
	}
	return true
}

// TryBypass does Enqueue and Dequeue at once if the packet's port is idle: the packet leaves at
// now. That is the common case on a port without a rate. In all other cases TryBypass does nothing
// and returns false. The caller must call Complete afterwards, as after Dequeue.
func (m *Manager) TryBypass(pkt *engine.Packet, now units.Time) bool {
	if pkt.EgressPort >= uint32(len(m.low)) || !m.strict || m.busy != nil || m.heap.Len() > 0 && m.heap.First().departure <= now {
		return false
	}
	p := m.low[pkt.EgressPort]
	if p == nil || p.total > 0 || p.pausing != 0 || p.free > now || int(pkt.Queue) >= len(p.queues) {
		return false
	}
	q := &p.queues[pkt.Queue]
	size := units.Bytes(pkt.Bytes)
	if !q.admits(size) {
		return false
	}
	pkt.EnqTime, pkt.EnqDepth, pkt.DeqTime, pkt.DeqDepth = now, 0, now, 0
	q.stats.Enqueued.add(size)
	q.stats.MaxPackets = max(q.stats.MaxPackets, 1)
	q.stats.MaxBytes = max(q.stats.MaxBytes, size)
	q.stats.Dequeued.add(size)
	p.sending, p.wire, p.free, p.departure = int(pkt.Queue), 0, now, now
	m.busy = p
	return true
}

// Next returns when the next packet of any port leaves. The time may be in the past. It returns
// false if all queues are empty.
func (m *Manager) Next() (units.Time, bool) {
	if m.heap.Len() == 0 {
		return 0, false
	}
	return m.heap.First().departure, true
}

// Dequeue removes the packet that leaves first, if it leaves by now. It fills in the packet's
// dequeue time and depth: the number of packets that were in the queue behind it at that time, as
// in BMv2. The caller must call Complete before the next Dequeue.
func (m *Manager) Dequeue(now units.Time) (Dequeued, bool) {
	if m.heap.Len() == 0 || m.heap.First().departure > now {
		return Dequeued{}, false
	}
	if m.busy != nil {
		panic("tm: Dequeue before Complete")
	}
	p := m.heap.First()
	at := p.departure
	i := p.pick(at)
	q := &p.queues[i]
	s := p.pop(i)
	q.stats.Dequeued.add(s.bytes)
	p.sending, p.wire, p.free = i, 0, at
	if p.pausing != 0 {
		p.expire(at)
	}
	m.busy = p
	m.remove(p)

	s.p.DeqTime = at
	s.p.DeqDepth = uint32(q.arrived(at))
	return Dequeued{Packet: s.p, Port: p.id, Known: p != m.rest, Epoch: s.epoch, At: at}, true
}

// OnTransmit accounts for a frame of n bytes that egress made from the packet of the last Dequeue.
// It returns when the frame's last bit leaves. The caller does not call it for a packet that
// egress drops.
func (m *Manager) OnTransmit(bytes units.Bytes) (finish units.Time) {
	p := m.busy
	p.sent.add(bytes)
	p.wire += bytes
	if p.rate > 0 {
		p.free = plus(p.free, p.rate.TxTime(bytes+m.config.Overhead))
	}
	return p.free
}

// Sending returns the queue of the packet between Dequeue and Complete; -1 when there is none.
func (m *Manager) Sending() int {
	if m.busy == nil {
		return -1
	}
	return m.busy.sending
}

// Complete reports that the packet from the last Dequeue has left egress.
func (m *Manager) Complete() {
	p := m.busy
	m.busy = nil
	q := &p.queues[p.sending]
	if q.ready() > p.departure {
		q.deficit = 0 // an empty queue loses its deficit
	} else {
		q.deficit -= p.wire
	}
	p.sending = -1
	m.place(p)
}
