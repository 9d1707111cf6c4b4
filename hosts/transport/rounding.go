package transport

import "github.com/headgate/headgate/units"

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
