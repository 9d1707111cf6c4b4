package headroom

import "github.com/headgate/headgate/units"

// recheck pauses the queue, and with DSH the port, that a packet was placed for (Fig. 3 and
// §IV-E), and keeps the order in which paused ones will be woken.
func (m *MMU) recheck(port int, class uint8, q *queue, p *port, at placement, victimUnlimited bool) {
	was := q.off
	free := m.free
	limit := m.reach // a victim's: it finds no place before, unless it may fill headroom
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
		m.resumeWaiting() // τ may have fallen, and no departure need follow
	}
}

// mayPause reports whether something that holds n bytes may be paused: with LocalResume,
// only a departure resumes it.
func (m *MMU) mayPause(n units.Bytes) bool { return n > 0 || !m.local }

// updateWaiting gives a queue and its port their places among those that wait for memory: paused,
// and with nothing in headroom that has to leave first. Places are looked at again when
// their turn comes (see resumeFirst), so it is enough that none is too late: what has grown since,
// or has bytes in headroom again, keeps its old place.
func (m *MMU) updateWaiting(port int, class uint8) {
	i := port*Classes + int(class)
	if q := &m.queues[i]; q.off && q.headroom == 0 {
		m.pausedQueues.lower(int32(i), q.shared+q.tau)
	}
	if p := &m.ports[port]; p.off && p.insured == 0 {
		m.pausedPorts.lower(int32(port), p.shared)
	}
}

// resumeWaiting resumes all queues and ports that the present threshold allows to. Paused ports are
// never victims, so one threshold holds for all.
func (m *MMU) resumeWaiting() {
	if len(m.pausedQueues.order)+len(m.pausedPorts.order) > 0 {
		m.resumeFirst()
	}
}

// resumeFirst resumes those at the top of the heaps for as long as the threshold allows.
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

// resumeLocal resumes the queue and port that a packet has left, if the threshold allows it
// or nothing is left whose departure could.
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
	m.queues[port*Classes+int(class)].off = false
	m.ports[port].classes &^= 1 << class
	m.stats.QueueResumes++
	m.touch(port)
}

func (m *MMU) resumePort(port int) {
	m.ports[port].off = false
	m.stats.PortResumes++
	m.touch(port)
}

// touch remembers that what a port has paused may have changed.
func (m *MMU) touch(port int) {
	if p := &m.ports[port]; !p.touched {
		p.touched = true
		m.touched = append(m.touched, int32(port))
	}
}

// signals returns the frames that tell the peers what has changed.
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
