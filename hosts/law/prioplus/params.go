package prioplus

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/units"
)

// Level says how a priority starts (§4.4, "Setting of W_LS" and "Whether to probe").
type Level uint8

// The levels. Low is the default.
const (
	Low    Level = iota // W_LS is an eighth of the bandwidth-delay product
	Middle              // a quarter
	High                // all of it, and no probe before the start
)

// part returns by what the bandwidth-delay product is divided.
func (l Level) part() units.Bytes {
	switch l {
	case High:
		return 1
	case Middle:
		return 4
	}
	return 8
}

// NoLimit is the limit of a highest priority, which no other needs to stop.
const NoLimit = units.MaxTime

// Params are the parameters of a flow; zero values take defaults where there are any.
type Params struct {
	// LineRate is the payload rate of the path; must be set.
	LineRate units.Rate
	// BaseRTT is the round trip of an empty path; must be set.
	BaseRTT units.Time
	// OneWay, when set, makes one-way delays decide; it is that of an empty path, at most
	// BaseRTT. 0, the default, takes round trips.
	OneWay units.Time
	// MSS is the payload of a full packet; must be set.
	MSS units.Bytes

	// Target and Limit are the channel, D_target and D_limit: delays with the base
	// included, base + Tolerance < Target < Limit. Limit may be NoLimit. See package
	// channel.
	Target, Limit units.Time
	// Level gives LinearStart its default and lets high priorities start without a probe.
	Level Level
	// LinearStart is W_LS, the window of a start on an empty path and its step per round
	// trip; the Level's part of the bandwidth-delay product by default.
	LinearStart units.Bytes
	// StartNow starts without a probe whatever the Level.
	StartNow bool

	// Tolerance is how far above the base a delay still counts as equal to it; 1 µs by
	// default.
	Tolerance units.Time
	// Filter is how many delays in a row must be beyond the limit; 2 by default, 1 in the
	// authors' reference runs.
	Filter int
	// Rand is where probes' random delays come from; must be set. Flows may share one that
	// the same goroutine uses.
	Rand *rand.Rand

	// Ablations, for studies of what a part does.
	EveryRTT      bool // adaptive increase every round trip instead of every second (§4.2.3)
	NoCardinality bool // no estimate of how many flows there are (§4.3.1)
}

// bdp returns BaseBdp.
func (p *Params) bdp() units.Bytes { return p.LineRate.In(p.BaseRTT) }

// base returns the delay of an empty path, of the kind that decides.
func (p *Params) base() units.Time {
	if p.OneWay > 0 {
		return p.OneWay
	}
	return p.BaseRTT
}

func (p Params) withDefaults() (Params, error) {
	if p.Tolerance == 0 {
		p.Tolerance = units.Microsecond
	}
	if p.Filter == 0 {
		p.Filter = 2
	}
	if p.LinearStart == 0 {
		p.LinearStart = max(p.bdp()/p.Level.part(), 1)
	}
	if p.Level == High {
		p.StartNow = true
	}
	switch {
	case p.LineRate <= 0:
		return p, fmt.Errorf("line rate %v: want a rate above 0", p.LineRate)
	case p.BaseRTT <= 0:
		return p, fmt.Errorf("base RTT %v: want a time above 0", p.BaseRTT)
	case p.OneWay < 0 || p.OneWay > p.BaseRTT:
		return p, fmt.Errorf("one-way delay %v: want more than 0 and at most the base RTT, %v, or 0 to use round trips", p.OneWay, p.BaseRTT)
	case p.MSS < 1:
		return p, fmt.Errorf("MSS %d B: want at least 1 B", int64(p.MSS))
	case p.Level > High:
		return p, fmt.Errorf("level %d: want Low, Middle or High", p.Level)
	case p.LinearStart < 1:
		return p, fmt.Errorf("linear start %d B: want at least 1 B", int64(p.LinearStart))
	case p.Tolerance < 0:
		return p, fmt.Errorf("tolerance %v: want a time above 0", p.Tolerance)
	case p.Filter < 1:
		return p, fmt.Errorf("filter %d: want 1 delay or more", p.Filter)
	case p.Rand == nil:
		return p, fmt.Errorf("rand: want a source of random numbers")
	}
	return p, p.checkChannel(p.Target, p.Limit)
}

func (p *Params) checkChannel(target, limit units.Time) error {
	if least := p.base() + p.Tolerance; target <= least {
		return fmt.Errorf("target %v: want more than the base delay and its tolerance, %v", target, least)
	}
	if limit <= target {
		return fmt.Errorf("limit %v: want more than the target, %v", limit, target)
	}
	return nil
}
