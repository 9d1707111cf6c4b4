package transport

import "github.com/headgate/headgate/units"

// pacer spaces packets at a rate that may change between them. A packet may leave once the one before it has
// lasted its time at the present rate. So a flow whose law raises a low rate does not wait for a packet's time
// at the old rate. The sender owns it.
type pacer struct {
	from units.Time  // scheduled start of the packet sent last
	len  units.Bytes // payload of the last packet; 0 before the first

	rate units.Rate // the rate that gap is for; while it stays, no division is needed
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

// sent takes the packet that leaves now. If the caller is late by at most a packet's time or maxLate, the
// schedule stays, so that a late timer does not lower the rate. If it is later, a new schedule starts, so that
// an idle flow does not save up a burst.
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
	slots []units.Time // negative (the complement) for packets sent more than once
}

const firstRing = 32

// put records when packet i was sent. Packets from una on are still in flight.
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

// rounding makes whole packets in flight equal the window on average over time: a window of 5.7 packets has six
// in flight for 70 % of the time and five for the rest. A plain comparison would always allow five, so shares
// of a few packets would be 10 to 20 % off their weights. The decision uses time and not packet numbers: the
// numbers of packets that leave together, and of those that wait, are not evenly spread and repeat in every
// round trip. The sender owns it.
type rounding struct {
	owed float64    // integral of window minus bytes in flight, bytes times picoseconds
	at   units.Time // time up to which owed is counted
}

// count adds to owed the difference between window and bytes in flight since the last call. The difference is
// at most a packet, and owed at most a packet for a round trip: anything beyond is not rounding. While the
// window is a packet or less, pacing spreads packets, and owed gets another value for each packet. So flows
// whose windows grow beyond a packet together do not all round up at the same time.
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
