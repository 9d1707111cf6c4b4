package transport

import "github.com/headgate/headgate/units"

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
