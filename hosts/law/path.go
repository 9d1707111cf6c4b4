package law

// MaxHops bounds the links whose telemetry a Path keeps; more than any path here has. What
// an acknowledgement tells of further links is not looked at.
const MaxHops = 12

// Path is what the acknowledgement before told of the links of a flow's path, for laws that
// live on what changed since (HPCC, PowerTCP). The law owns it.
type Path struct {
	hops [MaxHops]Hop
	n    int
}

// is reports whether hops, at most MaxHops, are the links that are kept, none of them
// restarted since.
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

// Keep takes hops, at most MaxHops, for the next comparison.
func (p *Path) Keep(hops []Hop) { p.n = copy(p.hops[:], hops) }

// Follows reports whether a tells of the links that are kept, which hops then are. Where it
// tells of others, they are kept and the round begins anew; where it tells of none, nothing
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

// Last returns kept link i, counted from 0.
func (p *Path) Last(i int) *Hop { return &p.hops[i] }
