package headroom

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Signal is a PFC frame to send out of an ingress port: PAUSE or RESUME for the classes
// whose bit is set, all eight for a port-level PAUSE.
type Signal struct {
	Port    int
	Classes uint8
	Pause   bool
}

// MMU is the memory management unit of one switch. It owns its accounts and its rules, and is not for concurrent
// use. The caller must pass times that never decrease, and ports and classes in range. A packet must arrive before
// it departs. No method but the constructor allocates.
type MMU struct {
	// The fields that most packets need are in two cache lines of 64 B; see TestLayout.
	rules
	queues []queue     // port · 8 + class
	free   units.Bytes // free bytes of the shared pool

	private      [2]units.Bytes // private memory of a lossy queue, and of a lossless queue
	least        units.Bytes    // lowest free before any departure so far
	pausedQueues resumeHeap     // paused queues without bytes in headroom

	pausedPorts resumeHeap
	size        units.Bytes // shared pool
	nq          units.Bytes // Nq
	stats       Stats

	ports   []port
	touched []int32 // empty between calls
	totals  Usage
	gap     units.Bytes // δ
	portGap units.Bytes // δp
	out     []Signal
	config  Config // last: no packet looks at it
}

type queue struct {
	private  units.Bytes
	shared   units.Bytes // includes insurance headroom under DSH
	headroom units.Bytes // unused under DSH
	tau      units.Bytes
	off      bool
}

func (q *queue) length() units.Bytes { return q.private + q.shared + q.headroom }

type port struct {
	shared  units.Bytes // held by lossless queues, insurance headroom included
	insured units.Bytes
	phi     units.Bytes
	classes uint8 // classes of paused queues, a bit each
	before  uint8 // the classes that the peer was told to pause
	off     bool  // paused as a whole
	touched bool
}

func (p *port) paused() uint8 {
	if p.off {
		return 0xFF
	}
	return p.classes
}

// New returns an empty MMU. It returns a *units.FieldError when c, with its defaults, is not
// valid.
func New(c Config) (*MMU, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	rules, err := newRules(&c)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", c.Policy, err)
	}
	layout := c.layout()
	n := len(c.Ports)
	c.Ports = append([]Port(nil), c.Ports...)
	m := &MMU{
		rules: rules, queues: make([]queue, n*Classes), ports: make([]port, n),
		size: layout.Shared, free: layout.Shared, least: layout.Shared,
		gap: c.ResumeGap, portGap: c.PortResumeGap, nq: units.Bytes(c.PortQueues),
		pausedQueues: newResumeHeap(n * Classes), pausedPorts: newResumeHeap(n),
		touched: make([]int32, 0, n), out: make([]Signal, 0, 2*n), config: c,
	}
	m.private = [2]units.Bytes{c.LossyPrivate, c.Private}
	for i := range m.ports {
		m.ports[i].phi = layout.Phi[i]
	}
	return m, nil
}

// Lossless returns the classes that never lose a packet: the classes under PFC, or none if the configuration
// accepts loss.
func (m *MMU) Lossless() uint8 {
	if m.config.AllowLoss || m.config.Policy == Oversubscribed {
		return 0
	}
	return m.lossless
}

// Arrive accounts for a packet of n bytes whose last bit has arrived at a port, or refuses it. It returns the PFC
// frames to send, which are valid until the next call.
func (m *MMU) Arrive(now units.Time, port int, class uint8, n units.Bytes) (ok bool, signals []Signal) {
	q := &m.queues[port*Classes+int(class)]
	lossless := m.lossless>>class&1 != 0
	if m.counted && !lossless {
		return true, nil
	}
	if free := m.free - n; m.simplePolicy && free >= 0 && q.private+n > m.private[m.lossless>>class&1] && q.shared+n < m.threshold(free) {
		// The common case: the queue stays below the threshold, so only the shared pool changes. A
		// paused queue keeps its place in the order of resuming.
		q.shared += n
		m.free = free
		return true, nil
	}
	p := &m.ports[port]
	at, victimUnlimited := m.place(now, port, q, p, class, n)
	switch at {
	case placePrivate:
		q.private += n
		m.totals.Private += n
		m.stats.Peak.Private = max(m.stats.Peak.Private, m.totals.Private)
	case placeShared:
		q.shared += n
		m.free -= n
	case placeHeadroom:
		q.headroom += n
		m.totals.Headroom += n
		m.stats.Peak.Headroom = max(m.stats.Peak.Headroom, m.totals.Headroom)
	case placeInsurance:
		q.shared += n
		p.insured += n
		m.totals.Insurance += n
		m.stats.Peak.Insurance = max(m.stats.Peak.Insurance, m.totals.Insurance)
	default:
		if s := &m.stats; lossless {
			s.LosslessDrops++
			s.LosslessDropBytes += n
		} else {
			s.LossyDrops++
			s.LossyDropBytes += n
		}
	}
	if !lossless {
		return at != placeNone, nil
	}
	if m.insured && at >= placeShared {
		p.shared += n
	}
	if at != placeNone && m.grows != nil {
		q.tau = m.grows.arrived(now, port, class, q.length())
	}
	m.recheck(now, port, class, q, p, at, victimUnlimited)
	return at != placeNone, m.signals(now)
}

// Depart removes a packet of n bytes from the accounts when its transmission begins. It returns the PFC frames to
// send, which are valid until the next call.
func (m *MMU) Depart(now units.Time, port int, class uint8, n units.Bytes) []Signal {
	if m.counted && m.lossless>>class&1 == 0 {
		return nil
	}
	q := &m.queues[port*Classes+int(class)]
	m.least = min(m.least, m.free)
	if m.simplePolicy && !m.local && !q.off && q.headroom == 0 && q.shared >= n && len(m.pausedQueues.order) == 0 {
		// The common case: the packet is in the shared pool, and no queue waits to resume.
		q.shared -= n
		m.free += n
		return nil
	}
	s := n // bytes that return to the shared pool
	if q.headroom != 0 || q.shared < n {
		s = m.takeOthers(q, n)
	}
	q.shared -= s
	if m.lossless>>class&1 == 0 {
		m.free += s
		if s > 0 && !m.local {
			m.resumeWaiting()
		}
		return m.signals(now)
	}
	if m.insured {
		p := &m.ports[port]
		p.shared -= s
		i := min(s, p.insured)
		p.insured -= i
		m.totals.Insurance -= i
		m.free += s - i
	} else {
		m.free += s
	}
	if m.spfc != nil {
		m.spfc.departed(now, port, n)
	}
	if m.local {
		m.resumeLocal(port, class)
	} else {
		if q.off || m.insured && m.ports[port].off {
			m.updateWaiting(port, class)
		}
		m.resumeWaiting()
	}
	if m.lends {
		m.lend(now, port, class)
	}
	return m.signals(now)
}

// takeOthers takes a departing packet out of headroom first, then the shared pool, then private memory. It subtracts
// the headroom and private bytes, and returns the shared ones for the caller to subtract.
func (m *MMU) takeOthers(q *queue, n units.Bytes) (shared units.Bytes) {
	h := min(n, q.headroom)
	s := min(n-h, q.shared)
	r := min(n-h-s, q.private)
	if h+s+r != n {
		m.stats.Underflows++
	}
	q.headroom -= h
	q.private -= r
	m.totals.Headroom -= h
	m.totals.Private -= r
	return s
}
