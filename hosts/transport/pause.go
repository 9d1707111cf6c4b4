package transport

import "github.com/headgate/headgate/units"

// pauses keeps the retransmission timeout right for a sender that PFC pauses. A pause also delays the packets
// in flight, but it is no loss. So a timeout must have passed by two clocks: the real one, and one that stops
// while the sender is paused. Each clock has its own estimate of the round trip. For a sender that is paused
// most of the time, the real clock's round trips contain the pauses, and the other clock's are short. With one
// estimate for both, which would contain the pauses, the stopping clock's timeout would last many round trips.
type pauses struct {
	until    units.Time // end of the latest pause
	total    units.Time // length of all pauses, of the latest up to its end
	deadline units.Time // the timeout by the stopping clock, as a time of the real one
	rtt      rttEstimator

	// One packet in flight is timed.
	timed       bool
	packet      uint64
	sent, stood units.Time // when it was sent, and how long the clock had been stopped by then
}

// stands returns how long the clock has been stopped in all until now.
func (p *pauses) stands(now units.Time) units.Time { return p.total - max(p.until-now, 0) }

// time times packet i, which leaves now for the first time, if none is timed.
func (p *pauses) time(i uint64, now units.Time) {
	if !p.timed {
		p.timed, p.packet, p.sent, p.stood = true, i, now, p.stands(now)
	}
}

// sample takes the round trip of the timed packet when the packets before upto are acknowledged.
func (p *pauses) sample(upto uint64, now units.Time) {
	if p.timed && p.packet < upto {
		p.timed = false
		p.rtt.sample(max(now-p.sent-(p.stands(now)-p.stood), 1))
	}
}

// Pause replaces the time until which the sender must not send. A time not after now ends the pause.
func (s *Sender) Pause(now, until units.Time) {
	if !s.paused {
		s.paused = true
		if s.deadline != units.MaxTime {
			s.pauses.deadline = s.deadline
		}
	}
	more := max(until-now, 0) - max(s.pauses.until-now, 0)
	s.pauses.until = until
	s.pauses.total += more
	s.pauses.deadline += more
}

// rttEstimator keeps the smoothed round-trip time and its variation as RFC 6298 §2
// computes them, in integers, and the least sample. The zero value has seen no sample.
type rttEstimator struct {
	srtt, rttvar, least units.Time
}

func (e *rttEstimator) sample(rtt units.Time) {
	if e.srtt == 0 {
		e.srtt, e.rttvar, e.least = rtt, rtt/2, rtt
		return
	}
	e.least = min(e.least, rtt)
	diff := rtt - e.srtt
	e.srtt += diff / 8
	if diff < 0 {
		diff = -diff
	}
	e.rttvar += (diff - e.rttvar) / 4
}

// timeout returns srtt + 4·rttvar and at least floor, and initial before the first sample.
func (e *rttEstimator) timeout(initial, floor units.Time) units.Time {
	if e.srtt == 0 {
		return initial
	}
	return max(e.srtt+4*e.rttvar, floor)
}
