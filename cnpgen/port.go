package cnpgen

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/units"
)

// FlowKey identifies a flow in PACC's sense: all packets from one address to another.
type FlowKey struct{ Src, Dst netip.Addr }

// FlowCount is what a flow has sent through an egress port in a period: bytes, and packets
// that met a queue above Params.Threshold. Whoever counts keeps it from tick to tick, with what the Port
// knows of the flow in it.
type FlowCount struct {
	Key              FlowKey
	Bytes, Congested uint64 // txBytes, N_cong

	carry float64 // fraction left of the last share, below 1 CNP
	live  bool    // the flow is in the table in the paper's sense
	row   int32   // index in the list of the tick
}

// Grant is how many CNPs a flow gets in the coming period, at least 1.
type Grant struct {
	Key  FlowKey
	CNPs int
}

// Port is PACC at one egress port, with the Pacer of the CNPs that it grants. The caller owns it; it is not
// safe for concurrent use.
type Port struct {
	Pacer
	par Params

	ticked   bool       // there was a tick
	last     units.Time // time of the last tick
	queueOld units.Bytes
	queueAvg float64 // bytes

	rank   []*FlowCount // scratch of fit
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
}

// NewPort returns a port. The error says which parameter is out of range.
func NewPort(p Params) (*Port, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	return &Port{Pacer: newPacer(p), par: p}, nil
}

// Stats returns the counters.
func (p *Port) Stats() Stats { return p.stats }

// Tick runs one period of Algorithm 1. queue is the length of the queue now, and flows is what each
// flow has sent since the last Tick, each flow once, in any order. The grants are for the coming period, over which
// the Pacer spreads them, and valid until the next Tick.
//
// Ticks need not be punctual, because Tick computes with the time that has really passed. In a late
// tick the change of the queue counts per period. An early tick gets only the fraction of a period's
// CNPs that has passed. The moving average and the ageing of flows use the actual time too. The
// first tick grants nothing, nor does a tick that is not later than the previous one.
func (p *Port) Tick(now units.Time, queue units.Bytes, flows []FlowCount) []Grant {
	p.grants = p.grants[:0]
	if !p.ticked || now > p.last {
		p.tick(now, queue, flows)
	}
	p.Pacer.add(now, p.grants)
	return p.grants
}

func (p *Port) tick(now units.Time, queue units.Bytes, flows []FlowCount) {
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

	least := float64(p.par.Burst) * periods
	p.fit(flows, least)
	all := p.all(queue, periods)
	p.queueOld = queue
	if !first && all > 0 {
		p.allocate(flows, all)
	}
	p.stats.All = all
	p.age(flows, least)
}

// fit adds the flows that have sent at least so much or were congested to the table. When there are more than
// it has room for, it leaves out the least congested, and among equals those with fewer bytes.
func (p *Port) fit(flows []FlowCount, least float64) {
	p.rank = p.rank[:0]
	for i := range flows {
		f := &flows[i]
		if f.row = int32(i); f.live || f.Congested > 0 || float64(f.Bytes) >= least {
			p.rank = append(p.rank, f)
		}
	}
	if over := len(p.rank) - p.par.MaxFlows; over > 0 {
		slices.SortFunc(p.rank, (*FlowCount).compare)
		p.stats.Evicted += uint64(over)
	}
	for r, f := range p.rank {
		f.live = r < p.par.MaxFlows
	}
}

// compare orders flows by congestion, most congested first. The other criteria make the order total.
func (f *FlowCount) compare(o *FlowCount) int {
	order := cmp.Or(cmp.Compare(o.Congested, f.Congested), cmp.Compare(o.Bytes, f.Bytes))
	switch {
	case order != 0 || f.live == o.live:
		return cmp.Or(order, cmp.Compare(f.row, o.row))
	case f.live:
		return -1
	}
	return 1
}

// age removes the flows that have sent fewer than least bytes in the period from the table.
func (p *Port) age(flows []FlowCount, least float64) {
	p.stats.Flows = 0
	for i := range flows {
		switch f := &flows[i]; {
		case f.live && float64(f.Bytes) < least:
			f.live, f.carry = false, 0
			p.stats.Aged++
		case f.live:
			p.stats.Flows++
		}
	}
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

// allocate is CNP_ALLOCATION_AND_GENERATION. Each flow of the table gets a share of all in proportion to its
// congested packets, rounded down, and at most T/gap.
func (p *Port) allocate(flows []FlowCount, all float64) {
	var sum uint64
	carried := 0.0
	for i := range flows {
		if f := &flows[i]; f.live && f.Congested > 0 {
			sum += f.Congested
			carried += f.carry
		}
	}
	all = min(all, maxAll)
	most := p.par.MaxPerFlow()
	left := int(all) // so that rounding errors do not grant more than all
	if p.par.Carry {
		left = int(all + carried)
	}
	granted := 0
	for i := range flows {
		f := &flows[i]
		if !f.live || f.Congested == 0 {
			continue
		}
		share := all * float64(f.Congested) / float64(sum)
		if p.par.Carry {
			share += f.carry
			f.carry = share - math.Floor(share)
		}
		if n := min(int(share), most, left); n > 0 {
			left -= n
			granted += n
			p.grants = append(p.grants, Grant{Key: f.Key, CNPs: n})
		}
	}
	if sum > 0 {
		p.stats.CNPs += uint64(granted)
		p.stats.Lost += uint64(max(0, int(all)-granted))
	}
}

// maxAll bounds N_all, so that it and the numbers computed from it fit in an int.
const maxAll = 1 << 30
