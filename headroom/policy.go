package headroom

import "github.com/headgate/headgate/units"

// rules are the thresholds of one MMU, which owns them: what its policy is made of. They
// keep no account of memory. They are parts and not an interface, because they are asked
// five times per packet and each dynamic call would cost as much as what it asks for.
type rules struct {
	fixed             units.Bytes // Static's threshold; 0 for the dynamic one
	alpha             Alpha       // of Eq. 2
	lossless          uint8
	insured           bool     // headroom is per port
	perQueueThreshold bool     // insured, but a queue's own threshold bounds it
	local             bool     // recheck only where a packet leaves
	counted           bool     // Config.Counted
	simplePolicy      bool     // neither headroom per port nor victims: what a queue holds decides alone
	grows             *shared  // DSH's τ; nil for none
	spfc              *victims // nil when no port may use the whole pool
}

// newRules returns the rules of a valid Config with defaults.
func newRules(c *Config) (rules, error) {
	r := rules{
		alpha: c.Alpha, lossless: c.Lossless, local: c.LocalResume || c.Counted, counted: c.Counted,
		insured: c.Policy.insured(), perQueueThreshold: c.Policy.insured() && c.DSH.NoSharedHeadroom,
		simplePolicy: !c.Policy.insured() && !c.Policy.victims(),
	}
	switch {
	case c.Policy == Static:
		r.fixed = c.Threshold
	case c.Policy.insured() && !c.DSH.NoSharedHeadroom:
		d, err := newShared(c)
		if err != nil {
			return r, err
		}
		r.grows = d
	}
	if c.Policy.victims() {
		r.spfc = newVictims(c)
	}
	return r, nil
}

// threshold returns T, the shared bytes that a queue may hold, when free bytes of the
// shared pool are left.
func (r *rules) threshold(free units.Bytes) units.Bytes {
	if r.fixed > 0 {
		return r.fixed
	}
	return r.alpha.Of(free)
}

// victimUnlimited reports whether a port's threshold is the whole shared pool instead.
func (r *rules) victimUnlimited(now units.Time, port int) bool {
	return r.spfc != nil && r.spfc.at(now, port).Victim()
}

// placement is the pool of a packet.
type placement uint8

const (
	placeNone placement = iota
	placePrivate
	placeShared // this one and those after it count as a queue's shared or headroom bytes
	placeHeadroom
	placeInsurance
)

// place chooses the pool of an arriving packet by Algorithm 1 and reports whether its port
// may use the whole shared pool.
func (m *MMU) place(now units.Time, port int, q *queue, p *port, class uint8, n units.Bytes) (at placement, victimUnlimited bool) {
	lossless := m.lossless>>class&1 != 0
	victimUnlimited = lossless && m.victimUnlimited(now, port)
	if q.private+n <= m.private[m.lossless>>class&1] {
		return placePrivate, victimUnlimited
	}
	if m.counted {
		return m.placeCounted(q, p, n, victimUnlimited), victimUnlimited
	}
	if victimUnlimited && m.spfcMayUseHeadroom && m.fits(n) {
		return placeShared, victimUnlimited
	}
	if free := m.free; n <= free && (victimUnlimited || m.below(p, q, lossless, n, m.threshold(free))) {
		return placeShared, victimUnlimited
	}
	if !lossless {
		return placeNone, victimUnlimited
	}
	switch {
	case m.insured && p.insured+n <= p.phi:
		return placeInsurance, victimUnlimited
	case !m.insured && q.headroom+n <= p.phi && m.fits(n):
		return placeHeadroom, victimUnlimited
	}
	return placeNone, victimUnlimited
}

// placeCounted is place in the public HPCC simulator's SwitchMmu (CheckIngressAdmission and UpdateIngressAdmission), which asks
// for the queue's threshold and headroom alone.
func (m *MMU) placeCounted(q *queue, p *port, n units.Bytes, victim bool) placement {
	limit := m.reach
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

// fits reports whether there is memory for n more bytes in the shared pool and headroom together. For headroom
// there always is while no victim's port fills that of others.
func (m *MMU) fits(n units.Bytes) bool { return m.size-m.free+m.totals.Headroom+n <= m.reach }

// below reports whether n more shared bytes keep a queue, or with DSH its port, below the
// threshold.
func (m *MMU) below(p *port, q *queue, lossless bool, n, t units.Bytes) bool {
	if m.insured && lossless && !m.perQueueThreshold {
		return p.shared+n < m.nq*t
	}
	return q.shared+n < t
}
