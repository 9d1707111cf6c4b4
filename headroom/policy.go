package headroom

import "github.com/headgate/headgate/units"

// Policy sets the thresholds of one MMU, which calls it with ports and classes that it has
// checked and with times that do not fall. A Policy keeps no account of memory.
type Policy interface {
	// Threshold returns T, the shared bytes that a queue may hold, when free bytes of the
	// shared pool are left.
	Threshold(free units.Bytes) units.Bytes
	// Whole reports whether a port's threshold is the whole shared pool instead.
	Whole(now units.Time, port int) bool
	// Arrived takes note that a packet of a lossless class was accepted, after which its
	// queue holds length bytes. It returns τ, by how much the queue pauses below T.
	Arrived(now units.Time, port int, class uint8, length units.Bytes) (tau units.Bytes)
	// Departed takes note that n bytes of a lossless class left.
	Departed(now units.Time, port int, n units.Bytes)
	// Paused takes note that a port has begun or ended to have paused classes.
	Paused(now units.Time, port int, paused bool)
}

// plain is a policy without τ and victims.
type plain struct{}

func (plain) Whole(units.Time, int) bool                                     { return false }
func (plain) Arrived(units.Time, int, uint8, units.Bytes) (none units.Bytes) { return 0 }
func (plain) Departed(units.Time, int, units.Bytes)                          {}
func (plain) Paused(units.Time, int, bool)                                   {}

// static has one threshold for ever.
type static struct {
	plain
	threshold units.Bytes
}

func (s *static) Threshold(units.Bytes) units.Bytes { return s.threshold }

// dynamic has the threshold of Eq. 2.
type dynamic struct {
	plain
	alpha Alpha
}

func (d *dynamic) Threshold(free units.Bytes) units.Bytes { return d.alpha.Of(free) }

// newPolicy returns the policy of a valid Config with defaults.
func newPolicy(c *Config) (Policy, error) {
	var p Policy = &dynamic{alpha: c.Alpha}
	switch {
	case c.Policy == Static:
		p = &static{threshold: c.Threshold}
	case c.Policy.insured() && !c.DSH.NoSharedHeadroom:
		d, err := newShared(c)
		if err != nil {
			return nil, err
		}
		p = d
	}
	if c.Policy.victims() {
		p = newVictims(c, p)
	}
	return p, nil
}
