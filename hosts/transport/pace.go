package transport

import "github.com/headgate/headgate/units"

// pacer spaces packets at a rate that may change between them: a packet may leave once the
// one before it has lasted its time at the rate of now, so that a flow that was slow is not
// held to its old rate for a packet's time when its law lets it go. The sender owns it.
type pacer struct {
	from units.Time  // when the packet sent last began on the schedule
	len  units.Bytes // its payload; 0 before the first

	rate units.Rate // for which gap holds, so that a rate that stays costs no division
	gap  units.Time
}

// next returns the earliest time of the next packet at a rate.
func (p *pacer) next(rate units.Rate) units.Time {
	if rate != p.rate {
		p.set(rate)
	}
	return p.from + p.gap
}

func (p *pacer) set(rate units.Rate) {
	// No gap is so long that adding it to a time overflows.
	p.rate, p.gap = rate, min(rate.TxTime(p.len), units.MaxTime/4)
}

// sent takes the packet that leaves now. Pacing keeps to its schedule when the caller is
// late by no more than it may be, a packet's time or maxLate, and starts a new one
// otherwise: a late timer must not lower the rate, an idle flow must not save up a burst.
func (p *pacer) sent(n units.Bytes, rate units.Rate, now, maxLate units.Time) {
	due := p.next(rate)
	if n != p.len {
		p.len = n
		p.set(rate)
	}
	p.from = max(due, now-max(p.gap, maxLate))
}
