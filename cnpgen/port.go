package cnpgen

import (
	"math"
	"net/netip"

	"github.com/headgate/headgate/units"
)

// FlowKey identifies a flow in PACC's sense: all packets from one address to another.
type FlowKey struct{ Src, Dst netip.Addr }

// FlowCount is what a flow has sent through an egress port in a period: bytes, and packets
// that met a queue above Params.Threshold.
type FlowCount struct {
	Key              FlowKey
	Bytes, Congested uint64
}

// Grant is how many CNPs a flow gets in the coming period, at least 1.
type Grant struct {
	Key  FlowKey
	CNPs int
}

// Port is PACC at one egress port. The caller owns it; it is not safe for concurrent use.
type Port struct {
	par Params

	ticked   bool       // there was a tick
	last     units.Time // time of the last tick
	queueOld units.Bytes
	queueAvg float64 // bytes

	table  table
	grants []Grant
	stats  Stats
}

// Stats counts what a Port has done. The first group of fields describes the last tick.
type Stats struct {
	Interval units.Time // actual time since the previous tick
	All      float64    // N_all after the checks of Algorithm 1: 0 when nothing was sent
	QueueAvg units.Bytes
	Flows    int // in the table

	Ticks    uint64
	Late     uint64 // ticks that came more than half a period late
	Missed   uint64 // periods without a tick
	Filtered uint64 // ticks with N_all above 0 in which the burst filter prevented CNPs
	CNPs     uint64 // CNPs granted
	Lost     uint64 // CNPs of N_all that were rounded off or exceeded T/gap of a flow
	Aged     uint64 // flows that left the table for sending less than Burst
	Evicted  uint64 // flows that left a full table, or that it had no room for; least congested first
	Ignored  uint64 // rows given twice, or more than twice MaxFlows
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

// Stats returns the counters.
func (p *Port) Stats() Stats { return p.stats }

// Tick runs one period of Algorithm 1. queue is the length of the queue now, and flows is what each
// flow has sent since the last Tick, in any order; the order of the last Tick is the fastest. The
// grants are for the coming period and valid until the next Tick.
//
// Ticks need not be punctual, because Tick computes with the time that has really passed. In a late
// tick the change of the queue counts per period. An early tick gets only the fraction of a period's
// CNPs that has passed. The moving average and the ageing of flows use the actual time too. The
// first tick grants nothing, nor does a tick that is not later than the previous one. A flow that is
// not listed is forgotten.
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

	p.table.read(flows, &p.stats)
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

// all returns N_all (Eq. 2), or 0 when it is negative or the burst filter prevents CNPs.
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

// allocate is CNP_ALLOCATION_AND_GENERATION. Each flow gets a share of all in proportion to its
// congested packets, rounded down, and at most T/gap.
func (p *Port) allocate(all float64) {
	sum := p.table.congested()
	if sum == 0 {
		return
	}
	all = min(all, maxAll)
	most := p.par.MaxPerFlow()
	// left prevents that rounding errors grant more than all.
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

// maxAll bounds N_all, so that it and the numbers computed from it fit in an int.
const maxAll = 1 << 30
