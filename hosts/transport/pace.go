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

// sendRing holds when each packet in flight was sent, indexed by packet number modulo its
// size, a power of two. It doubles when the window outgrows it, so a flow that has reached
// its window allocates nothing.
type sendRing struct {
	slots []units.Time // the complement, below zero, for packets sent more than once
}

const firstRing = 32

// put records packet i, of which those from una on are still in flight.
func (r *sendRing) put(i, una uint64, now units.Time, resent bool) {
	if i-una >= uint64(len(r.slots)) {
		grown := make([]units.Time, max(2*len(r.slots), firstRing))
		for j := una; j < i; j++ {
			grown[j&uint64(len(grown)-1)] = r.slots[j&uint64(len(r.slots)-1)]
		}
		r.slots = grown
	}
	if resent {
		now = ^now
	}
	r.slots[i&uint64(len(r.slots)-1)] = now
}

func (r *sendRing) get(i uint64) (sent units.Time, resent bool) {
	sent = r.slots[i&uint64(len(r.slots)-1)]
	return max(sent, ^sent), sent < 0
}

// rounding makes whole packets in flight come to the window on average over time: a window of
// 5.7 packets has six in flight for 70 % of the time and five for the rest. Plain comparison has
// five always, so shares of a few packets would be 10 to 20 % off their weights. What decides
// is time and not the number of the packet: packets that leave together and those that wait
// are not evenly spread, and repeat from round trip to round trip. The sender owns it.
type rounding struct {
	owed float64    // bytes times picoseconds by which what was in flight fell short of the window
	at   units.Time // until when that is counted
}

// count counts by how much a window was above what was in flight since the last call, a packet
// at most: the rest is not rounding, nor is what lasts longer than a packet for a round trip.
// Where the window is a packet or less pacing spreads what leaves; flows that grow beyond that
// together must not all round up at once, so each begins somewhere else.
func (s *Sender) count(window units.Bytes, now units.Time) {
	r, packet := &s.round, s.cfg.MSS
	most := float64(packet) * float64(s.rtt.srtt)
	if window <= packet {
		r.owed = -fraction(s.next) * most
	} else {
		short := min(max(window-s.inflight(), -packet), packet)
		r.owed = min(max(r.owed+float64(short)*float64(now-r.at), -most), most)
	}
	r.at = now
}

// fraction returns a number from 0 to 1 that is spread evenly over consecutive packets (Weyl's
// sequence of the golden ratio).
func fraction(i uint64) float64 {
	const golden = 0x9E3779B97F4A7C15
	return float64(i*golden) / (1 << 64)
}
