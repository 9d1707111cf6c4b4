package headroom

import (
	"cmp"
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// SPFCMargin is how far SPFC's judgement of ports is from being wrong in the flow model of its paper
// (§IV-C): N burst ports send all they can to an egress port, and so does one port with a part ε
// of its traffic, whose other flows go elsewhere and would be victims. The latter is a victim's port
// as long as more than C/K of it departs in a period, the former are not.
type SPFCMargin struct {
	// Victim and Burst are the departure rates (Eq. 6 and 5), Limit is C/K.
	Victim, Burst, Limit units.Rate
	// Limits of K by Eq. 8, both excluded: above KAbove a victim is found, below KBelow no burst port
	// is taken for one.
	KAbove, KBelow float64
	// Above is by how many packets a victim's departures of a period exceed the counting number C·TC/K,
	// Below by how many those of a burst port miss it. A count is off by less than a packet for each
	// stream that makes it up, two for a victim and one for a burst port: beyond that the states
	// hold, within it they may turn with every period, and below they are wrong.
	Above, Below float64
	// FewestBursts is the smallest N for which K tells burst ports apart, MostCongested the largest ε
	// up to which it finds a victim beside the present N.
	FewestBursts  int
	MostCongested float64
}

// Packets by which counts of a period may be off.
const (
	victimJitter = 2.0
	burstJitter  = 1.0
)

// Margin analyses K and Period at a line rate with so many burst ports, a congested part ε of the
// victim port's traffic and packets of a size. The *units.FieldError names what is out of range.
func (c SPFCConfig) Margin(rate units.Rate, bursts int, congested float64, packet units.Bytes) (SPFCMargin, error) {
	if err := cmp.Or(
		fault(rate <= 0, "rate", rate, "more than 0", ""),
		fault(c.K < 2 || c.K > 64, "k", c.K, "2 to 64", ""),
		fault(c.Period <= 0, "period", c.Period, "more than 0", ""),
		fault(bursts < 1 || bursts > MaxPorts, "bursts", bursts, fmt.Sprintf("1 to %d", MaxPorts), ""),
		fault(!(congested > 0 && congested <= 1), "congested", congested, "more than 0 to 1", ""),
		fault(packet < 64 || packet > 65535, "packet", inBytes(packet), "64 to 65535 B", ""),
	); err != nil {
		return SPFCMargin{}, err
	}
	n, k, line := float64(bursts+1), float64(c.K), float64(rate)
	// What comes for the congested port may be less than its share.
	victim := 1 - congested + math.Min(congested, 1/n)
	perPeriod := float64(rate.In(c.Period)) / float64(packet)
	return SPFCMargin{
		Victim: units.Rate(line * victim), Burst: units.Rate(line / n), Limit: units.Rate(line / k),
		KAbove: 1 / victim, KBelow: n,
		Above: perPeriod * (victim - 1/k), Below: perPeriod * (1/k - 1/n),
		FewestBursts: c.K, MostCongested: math.Min(1, 1-1/k+1/n),
	}, nil
}

// VictimHolds and BurstsHold report whether the states are right in every period.
func (m SPFCMargin) VictimHolds() bool { return m.Above >= victimJitter }

// BurstsHold is VictimHolds for burst ports.
func (m SPFCMargin) BurstsHold() bool { return m.Below >= burstJitter }

// Verdict says in a sentence what the figures mean.
func (m SPFCMargin) Verdict() string {
	say := func(margin, jitter float64, what, right, wrong string) string {
		switch {
		case margin >= jitter:
			return fmt.Sprintf("%s %s (by %.1f packets a period)", what, right, margin)
		case margin > -jitter:
			return fmt.Sprintf("%s may change with every period (%+.1f packets, and a count is off by up to %.0f)", what, margin, jitter)
		}
		return fmt.Sprintf("%s %s (by %.1f packets a period)", what, wrong, -margin)
	}
	return say(m.Above, victimJitter, "the victim's port", "is found", "is taken for a burst's") + "; " +
		say(m.Below, burstJitter, "burst ports", "are told apart", "are taken for victims'")
}
