package headroom

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Usage is how much of each pool is in use.
type Usage struct {
	Private, Shared, Headroom, Insurance units.Bytes
}

// Total returns the memory in use.
func (u Usage) Total() units.Bytes { return u.Private + u.Shared + u.Headroom + u.Insurance }

// Stats are an MMU's counters since its start.
type Stats struct {
	Peak Usage // the peak of each pool; the peaks may be at different times
	// PauseFrames and ResumeFrames are the PFC frames that the MMU asked for, without refreshes.
	PauseFrames, ResumeFrames uint64
	// Pauses and resumes of queues and ports, with or without a frame.
	QueuePauses, QueueResumes, PortPauses, PortResumes uint64

	// LosslessDrops count dropped packets of lossless classes. Each is an error: too little headroom, a peer that
	// does not stop, or a policy that accepts loss.
	LosslessDrops, LossyDrops         uint64
	LosslessDropBytes, LossyDropBytes units.Bytes
	// Underflows counts departures of more bytes than had arrived, which is an error of the caller.
	Underflows uint64
}

// Stats returns the counters.
func (m *MMU) Stats() Stats {
	s := m.stats
	s.Peak.Shared = m.size - min(m.least, m.free)
	return s
}

// Usage returns the bytes in use.
func (m *MMU) Usage() Usage {
	u := m.totals
	u.Shared = m.size - m.free
	return u
}

// Queue returns a queue's bytes in each pool. With DSH, Shared includes insurance headroom.
func (m *MMU) Queue(port int, class uint8) Usage {
	q := &m.queues[port*Classes+int(class)]
	return Usage{Private: q.private, Shared: q.shared, Headroom: q.headroom}
}

// Insured returns a port's bytes in its insurance headroom.
func (m *MMU) Insured(port int) units.Bytes { return m.ports[port].insured }

// Paused returns the classes that a port has told its peer to stop.
func (m *MMU) Paused(port int) uint8 { return m.ports[port].before }

// Off returns the classes of a port whose own queues are at XOFF.
func (m *MMU) Off(port int) uint8 { return m.ports[port].classes }

// PortPaused reports whether a port is paused as a whole, by DSH.
func (m *MMU) PortPaused(port int) bool { return m.ports[port].off }

// Victim reports whether SPFC regards a port as a victim.
func (m *MMU) Victim(now units.Time, port int) bool { return m.victimUnlimited(now, port) }

// Threshold returns T(t), or Static's threshold.
func (m *MMU) Threshold() units.Bytes { return m.threshold(m.free) }

// Limit returns the shared memory at which a queue pauses: Static's threshold or T(t), less τ. For a victim's port
// it is the whole shared pool and what paused queues lend, less τ.
func (m *MMU) Limit(now units.Time, port int, class uint8) units.Bytes {
	limit := m.Threshold()
	if m.Victim(now, port) {
		limit = m.victimThreshold()
	}
	return limit - m.Tau(port, class)
}

// Tau returns τ, the number of bytes below the threshold at which a queue pauses, as of the queue's last packet.
func (m *MMU) Tau(port int, class uint8) units.Bytes { return m.queues[port*Classes+int(class)].tau }

// Config returns the configuration with its defaults. Its ports are not to be changed.
func (m *MMU) Config() Config { return m.config }

// Audit adds up all accounts and returns an error when they disagree or a pool is
// overdrawn. It takes time in proportion to the ports.
func (m *MMU) Audit() error {
	var sum Usage
	for i := range m.ports {
		p := &m.ports[i]
		var lossless units.Bytes
		var classes uint8
		for class := range uint8(Classes) {
			q := &m.queues[i*Classes+int(class)]
			if min(q.private, q.shared, q.headroom) < 0 || q.private > m.private[m.lossless>>class&1] || q.headroom > p.phi {
				return fmt.Errorf("port %d class %d holds %+v, private %d B and headroom %d B allowed", i, class, m.Queue(i, class), m.private[m.lossless>>class&1], p.phi)
			}
			sum.Private += q.private
			sum.Shared += q.shared
			sum.Headroom += q.headroom
			if m.lossless>>class&1 != 0 {
				lossless += q.shared
			}
			if q.off {
				classes |= 1 << class
			}
		}
		if m.insured && (lossless != p.shared || p.insured < 0 || p.insured > min(p.phi, p.shared)) {
			return fmt.Errorf("port %d: queues hold %d B, the port %d B with %d B of %d B insurance", i, lossless, p.shared, p.insured, p.phi)
		}
		if classes != p.classes || p.paused() != p.before || p.touched {
			return fmt.Errorf("port %d: paused queues %08b, recorded %08b, told the peer %08b", i, classes, p.classes, p.before)
		}
		sum.Insurance += p.insured
	}
	sum.Shared -= sum.Insurance
	if sum != m.Usage() {
		return fmt.Errorf("queues add up to %+v, pools to %+v", sum, m.Usage())
	}
	if !m.counted && (sum.Shared > m.victimThreshold() || sum.Total() > m.config.Buffer) {
		return fmt.Errorf("in use are %+v of a buffer of %d B with a shared pool of %d B", sum, m.config.Buffer, m.size)
	}
	return nil
}
