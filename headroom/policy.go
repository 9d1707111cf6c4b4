package headroom

import (
	"github.com/headgate/headgate/units"
)

// rules are the thresholds of a policy. One MMU owns them. They keep no account of memory. They are a struct and
// not an interface, because the MMU uses them five times per packet, and a dynamic call would cost as much as the
// work itself.
type rules struct {
	fixed             units.Bytes // Static's threshold; 0 for the dynamic one
	alpha             Alpha       // α of Eq. 2
	lossless          uint8
	insured           bool     // headroom per port (DSH's insurance)
	perQueueThreshold bool     // insured, but the threshold bounds each queue, not the port
	local             bool     // recheck only where a packet leaves
	counted           bool     // Config.Counted
	lends             bool     // paused queues lend headroom to victims
	simplePolicy      bool     // neither headroom per port nor victims: a queue's length alone decides
	grows             *shared  // DSH's τ; nil for none
	spfc              *victims // nil when no port may use the whole pool
}

func newRules(c *Config) (rules, error) {
	r := rules{
		alpha: c.Alpha, lossless: c.Lossless, local: c.LocalResume || c.Counted, counted: c.Counted,
		insured: c.Policy.Insured(), perQueueThreshold: c.Policy.Insured() && c.DSH.NoSharedHeadroom,
		simplePolicy: !c.Policy.Insured() && !c.Policy.Victims(),
	}
	switch {
	case c.Policy == Static:
		r.fixed = c.Threshold
	case c.Policy.Insured() && !c.DSH.NoSharedHeadroom:
		d, err := newShared(c)
		if err != nil {
			return r, err
		}
		r.grows = d
	}
	if c.Policy.Victims() {
		r.spfc = newVictims(c)
		r.lends = c.Policy == SPFC && !c.Counted
	}
	return r, nil
}

// threshold returns T, the shared bytes that a queue may hold while free bytes of the shared pool are free.
func (r *rules) threshold(free units.Bytes) units.Bytes {
	if r.fixed > 0 {
		return r.fixed
	}
	return r.alpha.Threshold(free)
}

// victimUnlimited reports whether a port is an SPFC victim, whose threshold is the whole shared pool.
func (r *rules) victimUnlimited(now units.Time, port int) bool {
	return r.spfc != nil && r.spfc.at(now, port).Victim()
}

// placement is the pool of a packet.
type placement uint8

const (
	placeNone placement = iota
	placePrivate
	placeShared // this placement and all later ones count as a queue's shared or headroom bytes
	placeHeadroom
	placeInsurance
)

// place chooses the pool of a packet by Algorithm 1 and reports whether its port may use the whole shared pool.
func (m *MMU) place(now units.Time, port int, q *queue, p *port, class uint8, n units.Bytes) (at placement, victimUnlimited bool) {
	lossless := m.lossless>>class&1 != 0
	victimUnlimited = lossless && m.victimUnlimited(now, port)
	if q.private+n <= m.private[m.lossless>>class&1] {
		return placePrivate, victimUnlimited
	}
	switch free := m.free; {
	case m.counted:
		at = m.placeCounted(q, p, n, victimUnlimited)
	case m.lends && m.size-free+m.totals.Private+m.totals.Headroom+n > m.config.Buffer:
		// Memory is full only if a peer sends although its queue has lent its headroom.
	case victimUnlimited && n <= m.victimThreshold()-(m.size-free), n <= free && m.below(p, q, lossless, n, m.threshold(free)):
		at = placeShared
	case lossless && m.insured && p.insured+n <= p.phi:
		at = placeInsurance
	case lossless && !m.insured && q.headroom+n <= p.phi:
		at = placeHeadroom
	}
	return at, victimUnlimited
}

// placeCounted is place as in the public HPCC simulator's SwitchMmu (CheckIngressAdmission and
// UpdateIngressAdmission). It checks only the queue's threshold and headroom.
func (m *MMU) placeCounted(q *queue, p *port, n units.Bytes, victim bool) placement {
	limit := m.victimThreshold()
	if !victim {
		limit = m.threshold(m.free)
	}
	switch {
	case q.shared+n <= limit:
		return placeShared
	case q.headroom+n <= p.phi:
		return placeHeadroom
	}
	return placeNone
}

// below reports whether n more shared bytes keep a queue, or with DSH its port, below the threshold.
func (m *MMU) below(p *port, q *queue, lossless bool, n, t units.Bytes) bool {
	if m.insured && lossless && !m.perQueueThreshold {
		return p.shared+n < m.nq*t
	}
	return q.shared+n < t
}

// recheck pauses the queue of a placed packet, and with DSH its port, if Fig. 3 and §IV-E require it. It keeps the
// order in which paused queues and ports resume.
func (m *MMU) recheck(now units.Time, port int, class uint8, q *queue, p *port, at placement, victimUnlimited bool) {
	was := q.off
	free := m.free
	limit := m.victimThreshold()
	t := m.threshold(free)
	if !victimUnlimited {
		limit = t
	}
	if !q.off && m.mayPause(q.length()) && (q.shared > limit-q.tau || m.counted && q.shared == limit || at == placeHeadroom || at == placeNone) {
		q.off = true
		p.classes |= 1 << class
		m.stats.QueuePauses++
		m.touch(port)
	}
	if m.lends && q.off {
		m.spfc.heard(now, port*Classes+int(class))
	}
	if m.insured {
		portLimit := m.size
		if !victimUnlimited {
			portLimit = m.nq * t
		}
		if !p.off && m.mayPause(p.shared) && (p.shared > portLimit || at == placeInsurance || at == placeNone) {
			p.off = true
			m.stats.PortPauses++
			m.touch(port)
		}
	}
	if m.local || p.paused() == 0 {
		return
	}
	m.updateWaiting(port, class)
	if was && m.grows != nil {
		m.resumeWaiting() // τ may have fallen, and perhaps no departure follows
	}
}

// mayPause reports whether a queue or port that holds n bytes may be paused. With LocalResume an empty one may
// not, because only a departure resumes it.
func (m *MMU) mayPause(n units.Bytes) bool { return n > 0 || !m.local }

// updateWaiting moves a paused queue and its port, if their headroom is empty, forward in the order of resuming.
// Nothing moves back here: resumeFirst checks each key again before it resumes, so a key may be too small but not too
// large.
func (m *MMU) updateWaiting(port int, class uint8) {
	i := port*Classes + int(class)
	if q := &m.queues[i]; q.off && q.headroom == 0 {
		m.pausedQueues.lower(int32(i), q.shared+q.tau)
	}
	if p := &m.ports[port]; p.off && p.insured == 0 {
		m.pausedPorts.lower(int32(port), p.shared)
	}
}

// resumeWaiting resumes the queues below the threshold. All share one threshold, because paused ports are never
// victims.
func (m *MMU) resumeWaiting() {
	if len(m.pausedQueues.order)+len(m.pausedPorts.order) > 0 {
		m.resumeFirst()
	}
}

// resumeFirst resumes the first queues and ports in the order of resuming for as long as the threshold allows.
func (m *MMU) resumeFirst() {
	t := m.threshold(m.free)
	for {
		i, key, ok := m.pausedQueues.first()
		if !ok || key+m.gap >= t {
			break
		}
		q := &m.queues[i]
		if now := q.shared + q.tau; q.headroom == 0 && now > key {
			m.pausedQueues.put(i, now)
			continue
		}
		m.pausedQueues.remove(i)
		if q.headroom == 0 {
			m.resumeQueue(int(i)/Classes, uint8(i%Classes))
		}
	}
	for {
		i, key, ok := m.pausedPorts.first()
		if !ok || key+m.portGap >= m.nq*t {
			break
		}
		p := &m.ports[i]
		if p.insured == 0 && p.shared > key {
			m.pausedPorts.put(i, p.shared)
			continue
		}
		m.pausedPorts.remove(i)
		if p.insured == 0 {
			m.resumePort(int(i))
		}
	}
}

// resumeLocal resumes the queue and port of a departed packet if they are below the threshold or empty.
func (m *MMU) resumeLocal(port int, class uint8) {
	q, p := &m.queues[port*Classes+int(class)], &m.ports[port]
	if !q.off && !p.off {
		return
	}
	t := m.threshold(m.free)
	if q.off && (q.headroom == 0 && (q.shared+q.tau+m.gap < t || m.counted && (q.shared == 0 || q.shared+m.gap == t)) || q.length() == 0) {
		m.resumeQueue(port, class)
	}
	if p.off && p.insured == 0 && (p.shared+m.portGap < m.nq*t || p.shared == 0) {
		m.resumePort(port)
	}
}

func (m *MMU) resumeQueue(port int, class uint8) {
	i := port*Classes + int(class)
	m.queues[i].off = false
	if m.lends {
		m.spfc.loan(i, 0)
	}
	m.ports[port].classes &^= 1 << class
	m.stats.QueueResumes++
	m.touch(port)
}

func (m *MMU) resumePort(port int) {
	m.ports[port].off = false
	m.stats.PortResumes++
	m.touch(port)
}

// touch remembers that a port's paused classes may have changed.
func (m *MMU) touch(port int) {
	if p := &m.ports[port]; !p.touched {
		p.touched = true
		m.touched = append(m.touched, int32(port))
	}
}

func (m *MMU) signals(now units.Time) []Signal {
	if len(m.touched) == 0 {
		return nil
	}
	return m.changes(now)
}

// changes returns the frames for the ports that were touched.
func (m *MMU) changes(now units.Time) []Signal {
	m.out = m.out[:0]
	for _, i := range m.touched {
		p := &m.ports[i]
		p.touched = false
		after := p.paused()
		more, less := after&^p.before, p.before&^after
		if more != 0 {
			if p.off {
				more = 0xFF
			}
			m.out = append(m.out, Signal{Port: int(i), Classes: more, Pause: true})
			m.stats.PauseFrames++
		}
		if less != 0 {
			m.out = append(m.out, Signal{Port: int(i), Classes: less})
			m.stats.ResumeFrames++
		}
		if m.spfc != nil && (after == 0) != (p.before == 0) {
			m.spfc.paused(now, int(i), after != 0)
		}
		p.before = after
	}
	m.touched = m.touched[:0]
	return m.out
}
