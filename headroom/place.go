package headroom

import "github.com/headgate/headgate/units"

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
func (m *MMU) place(now units.Time, port int, q *queue, p *port, class uint8, n units.Bytes) (at placement, whole bool) {
	lossless := m.lossless>>class&1 != 0
	whole = lossless && m.whole(now, port)
	if q.private+n <= m.private[m.lossless>>class&1] {
		return placePrivate, whole
	}
	if whole && m.loose && m.fits(n) {
		return placeShared, whole
	}
	if free := m.free; n <= free && (whole || m.below(p, q, lossless, n, m.threshold(free))) {
		return placeShared, whole
	}
	if !lossless {
		return placeNone, whole
	}
	switch {
	case m.insured && p.insured+n <= p.phi:
		return placeInsurance, whole
	case !m.insured && q.headroom+n <= p.phi && m.fits(n):
		return placeHeadroom, whole
	}
	return placeNone, whole
}

// fits reports whether there is memory for n more bytes in the shared pool and headroom together. For headroom
// there always is while no victim's port fills that of others.
func (m *MMU) fits(n units.Bytes) bool { return m.size-m.free+m.totals.Headroom+n <= m.reach }

// below reports whether n more shared bytes keep a queue, or with DSH its port, below the
// threshold.
func (m *MMU) below(p *port, q *queue, lossless bool, n, t units.Bytes) bool {
	if m.insured && lossless && !m.apart {
		return p.shared+n < m.nq*t
	}
	return q.shared+n < t
}
