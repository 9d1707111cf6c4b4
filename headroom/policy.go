package headroom

import "github.com/headgate/headgate/units"

// rules are the thresholds of one MMU, which owns them: what its policy is made of. They
// keep no account of memory. They are parts and not an interface, because they are asked
// five times per packet and each dynamic call would cost as much as what it asks for.
type rules struct {
	fixed    units.Bytes // Static's threshold; 0 for the dynamic one
	alpha    Alpha       // of Eq. 2
	lossless uint8
	insured  bool     // headroom is per port
	apart    bool     // insured, but a queue's own threshold bounds it
	local    bool     // recheck only where a packet leaves
	plain    bool     // neither headroom per port nor victims: what a queue holds decides alone
	grows    *shared  // DSH's τ; nil for none
	spfc     *victims // nil when no port may use the whole pool
}

// newRules returns the rules of a valid Config with defaults.
func newRules(c *Config) (rules, error) {
	r := rules{
		alpha: c.Alpha, lossless: c.Lossless, local: c.LocalResume,
		insured: c.Policy.insured(), apart: c.Policy.insured() && c.DSH.NoSharedHeadroom,
		plain: !c.Policy.insured() && !c.Policy.victims(),
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

// whole reports whether a port's threshold is the whole shared pool instead.
func (r *rules) whole(now units.Time, port int) bool {
	return r.spfc != nil && r.spfc.at(now, port).Victim()
}
