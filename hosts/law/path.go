package law

import "github.com/headgate/headgate/units"

// MaxHops bounds the links whose telemetry a Path keeps; every path here is shorter. A Path ignores the
// telemetry of further links.
const MaxHops = 12

// Path keeps the telemetry of the last acknowledgement for laws that use differences (HPCC, PowerTCP).
// The law owns it.
type Path struct {
	hops [MaxHops]Hop
	n    int
}

// Follows returns the telemetry of a and reports whether it comes from the kept links. If it comes from others, or a
// link was restarted, Follows keeps the new telemetry and begins a new round. Without telemetry nothing
// changes.
func (p *Path) Follows(a *Ack, r *Round) (hops []Hop, ok bool) {
	hops = a.INT[:min(len(a.INT), MaxHops)]
	if len(hops) == 0 || p.is(hops) {
		return hops, len(hops) > 0
	}
	p.Keep(hops)
	r.Begin(a.SentSeq)
	return nil, false
}

// Change is the change of a link's counters since the kept acknowledgement.
type Change struct {
	Span    float64 // time since the kept acknowledgement, picoseconds; 0 when the link's clock has not moved
	PerByte float64 // time to send a byte, picoseconds
	Sent    float64 // the link's output, as a fraction of its rate
}

// Change returns the change of link i, counted from 0, up to h.
func (p *Path) Change(i int, h *Hop) (c Change) {
	was := &p.hops[i]
	if h.Time > was.Time && h.Rate > 0 {
		c.Span = float64(h.Time - was.Time)
		c.PerByte = 8 * float64(units.Second) / float64(h.Rate)
		c.Sent = float64(h.TxBytes-was.TxBytes) * c.PerByte / c.Span
	}
	return c
}

// Queue returns the kept queue of link i.
func (p *Path) Queue(i int) units.Bytes { return p.hops[i].Queue }

// Keep keeps hops, at most MaxHops, for the next comparison.
func (p *Path) Keep(hops []Hop) { p.n = copy(p.hops[:], hops) }

// is reports whether hops, at most MaxHops, are the kept links, none of them restarted since.
func (p *Path) is(hops []Hop) bool {
	if len(hops) != p.n {
		return false
	}
	for i := range hops {
		if hops[i].Rate != p.hops[i].Rate || hops[i].TxBytes < p.hops[i].TxBytes {
			return false
		}
	}
	return true
}
