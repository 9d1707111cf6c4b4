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

// Is reports whether hops, at most MaxHops, are the links that are kept, none of them
// restarted since.
func (p *Path) Is(hops []Hop) bool {
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

// Last returns kept link i, counted from 0.
func (p *Path) Last(i int) *Hop { return &p.hops[i] }
