package cnpgen

import (
	"math"
	"net/netip"

	"github.com/headgate/headgate/units"
)

// FlowKey is what PACC calls a flow: all that goes from one address to another.
type FlowKey struct{ Src, Dst netip.Addr }

// FlowCount is what a switch has counted of a flow at an egress port since the flow's entry
// was made: bytes, and packets that met a queue above Params.Threshold.
type FlowCount struct {
	Key              FlowKey
	Bytes, Congested uint64
}

// Grant is how many CNPs a flow gets in the coming period, at least 1.
type Grant struct {
	Key  FlowKey
	CNPs int
}

// Port is PACC at one egress port. Whoever ticks it owns it; it is not safe for concurrent
// use.
type Port struct {
	par Params

	ticked   bool       // there was a tick
	last     units.Time // of it
	queueOld units.Bytes
	queueAvg float64 // bytes

	table  table
	grants []Grant
	stats  Stats
}

// Stats counts what a Port has done. The first group is of the last tick.
type Stats struct {
	Interval units.Time // true time since the tick before
	All      float64    // N_all after the checks of Algorithm 1: 0 when nothing was sent
	QueueAvg units.Bytes
	Flows    int // in the table

	Ticks     uint64
	Late      uint64 // ticks that came more than half a period late
	Missed    uint64 // periods without a tick
	Filtered  uint64 // ticks with N_all above 0 that the burst filter held back
	CNPs      uint64 // granted
	Lost      uint64 // of N_all, rounded off or above a flow's most
	Aged      uint64 // flows that left the table for sending less than Burst
	Evicted   uint64 // flows, least congested first, that left a full table or found no place
	Ignored   uint64 // rows given twice or beyond the bounded memory for counters
	Backwards uint64 // counters that ran backwards
}

// NewPort returns a port with an empty table.
func NewPort(p Params) (*Port, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	return &Port{par: p, table: newTable(p.MaxFlows)}, nil
}

// Params returns the port's parameters.
func (p *Port) Params() Params { return p.par }

// SetParams changes the parameters from the next tick on; the table and its counters stay.
func (p *Port) SetParams(par Params) error {
	if err := par.validate(); err != nil {
		return err
	}
	p.par = par
	p.table.limit = par.MaxFlows
	return nil
}

// Stats returns the counters.
func (p *Port) Stats() Stats { return p.stats }

// Tick is one period of Algorithm 1: the queue as it is now and all flows that the switch
// has entries for, with counters since each entry was made, in any order, best in the same
// as last time. The grants are for the coming period and valid until the next Tick.
//
// Ticks need not be punctual. What the counters and the queue have changed by is taken
// over the time that has really passed: of a tick that comes late the change of the queue
// counts per period, and an early one gets the fraction of a period's CNPs that it covers.
// The average forgets, and flows age, by the true time. The first tick, and one at a time
// that is not after the last, grant nothing.
//
// A flow that is new counts from 0. One whose counter has run backwards, because a switch
// restarted or made the entry anew, grants nothing and counts from there. A flow that is
// not listed any more is forgotten.
func (p *Port) Tick(now units.Time, queue units.Bytes, flows []FlowCount) []Grant {
	p.grants = p.grants[:0]
	if p.ticked && now <= p.last {
		return p.grants
	}
	p.stats.Ticks++
	periods := float64(now-p.last) / float64(p.par.Interval)
	first := !p.ticked
	if first {
		periods = 1
		p.queueOld, p.queueAvg = queue, float64(queue)
	} else {
		p.stats.Interval = now - p.last
		p.punctuality(periods)
		keep := math.Pow(1-p.par.FilterWeight, periods)
		p.queueAvg = (1-keep)*float64(queue) + keep*p.queueAvg
	}
	p.ticked, p.last = true, now
	p.stats.QueueAvg = units.Bytes(math.Round(p.queueAvg))

	p.table.read(flows, first, &p.stats)
	p.table.fit(float64(p.par.Burst)*periods, &p.stats)
	all := p.all(queue, periods)
	p.queueOld = queue
	if !first && all > 0 {
		p.allocate(all)
	}
	p.stats.All = all
	p.table.age(float64(p.par.Burst)*periods, &p.stats)
	p.stats.Flows = p.table.live
	return p.grants
}

func (p *Port) punctuality(periods float64) {
	if periods > 1.5 {
		p.stats.Late++
	}
	if missed := math.Round(periods) - 1; missed > 0 {
		p.stats.Missed += uint64(min(missed, 1e15))
	}
}

// all is N_all (Eq. 2), or 0 when it is negative or the burst filter holds it back.
func (p *Port) all(queue units.Bytes, periods float64) float64 {
	early, late := min(periods, 1), max(periods, 1)
	n := p.par.Beta1*float64(queue-p.par.Threshold)/bytesPerKB*early +
		p.par.Beta2*float64(queue-p.queueOld)/bytesPerKB/late
	if !(n > 0) {
		return 0
	}
	if p.queueAvg <= float64(p.par.Burst) {
		p.stats.Filtered++
		return 0
	}
	return n
}

// allocate is CNP_ALLOCATION_AND_GENERATION: each flow's share of all by its congested
// packets, rounded down, at most T/gap.
func (p *Port) allocate(all float64) {
	sum := p.table.congested()
	if sum == 0 {
		return
	}
	all = min(all, maxAll)
	most := p.par.MaxPerFlow()
	// Rounding of floats must not grant more than there is.
	left := int(all)
	if p.par.Carry {
		left = int(all + p.table.carried())
	}
	granted := 0
	for _, i := range p.table.order {
		e := &p.table.entries[i]
		if !e.live || e.congested == 0 {
			continue
		}
		share := all * float64(e.congested) / float64(sum)
		if p.par.Carry {
			share += e.carry
			e.carry = share - math.Floor(share)
		}
		n := min(int(share), most, left)
		if n == 0 {
			continue
		}
		left -= n
		granted += n
		p.grants = append(p.grants, Grant{Key: e.key, CNPs: n})
	}
	p.stats.CNPs += uint64(granted)
	p.stats.Lost += uint64(max(0, int(all)-granted))
}

// maxAll keeps N_all and what is computed of it within an int.
const maxAll = 1 << 30
