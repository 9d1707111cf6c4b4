package cnpgen

import (
	"cmp"
	"hash/crc32"
	"math"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// FlowKey identifies a flow in PACC's sense: all packets from one address to another.
type FlowKey struct{ Src, Dst netip.Addr }

// FlowCount counts a flow's traffic through an egress port in a period: bytes, and packets that met a queue above
// Params.Threshold. The caller keeps it from tick to tick, because the Port stores the flow's state in it.
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

// Stats are a Port's counters. The first group of fields describes the last tick.
type Stats struct {
	Interval units.Time // actual time since the previous tick
	All      float64    // N_all after the checks of Algorithm 1: 0 when nothing was sent
	QueueAvg units.Bytes
	Flows    int // number of flows in the table

	Ticks    uint64
	Late     uint64 // ticks that came more than half a period late
	Missed   uint64 // periods without a tick
	Filtered uint64 // ticks with N_all above 0 in which the burst filter prevented CNPs
	CNPs     uint64 // CNPs granted
	Lost     uint64 // CNPs of N_all that were rounded off or exceeded T/gap of a flow
	Aged     uint64 // flows that left the table for sending less than Burst
	Evicted  uint64 // flows removed from a full table, or not added to one; least congested first
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

// Tick runs one period of Algorithm 1. queue is the length of the queue now. flows has the traffic of each
// flow since the last Tick, each flow once, in any order. Tick returns the grants for the coming period, valid
// until the next Tick. The Pacer spreads them over the period.
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

// fit adds to the table the flows that have sent at least least bytes or were congested. If the table lacks room,
// fit leaves out the least congested flows, and among equals those with fewer bytes.
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
	left := int(all) // so that rounding errors never grant more than all
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

// Pacer spreads the CNPs of a period evenly over it. It never sends two to one flow within the gap
// (§III-B.4). When the next period begins, a flow's new grant replaces the CNPs that are left of the
// old one. It is part of a Port.
type Pacer struct {
	interval, gap units.Time

	flows  []*paced
	free   []*paced
	index  map[FlowKey]*paced
	due    heap.Heap[*paced] // flows with CNPs left, earliest first
	seq    uint64
	left   int
	period uint64 // number of calls of add
}

// paced is a flow that has CNPs left, or whose last CNP was less than the gap ago.
type paced struct {
	key     FlowKey
	at      units.Time // time of the next CNP
	last    units.Time // time of the previous CNP; never when there is none
	spacing units.Time
	left    int
	seq     uint64 // breaks ties
	pos     int    // index in due
	period  uint64 // period of the last grant
}

// never is a time so early that never plus any gap is before all times.
const never = -units.MaxTime / 2

func newPacer(p Params) Pacer {
	return Pacer{interval: p.Interval, gap: p.CNPGap, index: map[FlowKey]*paced{}, due: heap.New(func(a, b *paced) bool {
		return a.at < b.at || a.at == b.at && a.seq < b.seq
	}, func(f *paced, at int) { f.pos = at })}
}

// add schedules a period's grants from now on, each flow's first CNP as soon as the gap allows. A flow without a new grant loses
// its remaining CNPs. Memory is bounded by the number of flows in the grants of two periods.
func (p *Pacer) add(now units.Time, grants []Grant) {
	p.period++
	for _, g := range grants {
		f := p.index[g.Key]
		if f == nil {
			f = p.enter(g.Key)
		}
		p.drop(f)
		p.seq++
		f.at = max(now, f.last+p.gap)
		f.left, f.seq, f.period = g.CNPs, p.seq, p.period
		f.spacing = max(p.gap, (now+p.interval-f.at)/units.Time(g.CNPs))
		p.left += g.CNPs
		p.due.Push(f)
	}
	keep := p.flows[:0]
	for _, f := range p.flows {
		if f.period != p.period {
			p.drop(f)
			if f.last+p.gap <= now {
				delete(p.index, f.key)
				p.free = append(p.free, f)
				continue
			}
		}
		keep = append(keep, f)
	}
	p.flows = keep
}

func (p *Pacer) enter(k FlowKey) *paced {
	f := &paced{}
	if n := len(p.free); n > 0 {
		f, p.free = p.free[n-1], p.free[:n-1]
	}
	*f = paced{key: k, pos: heap.Outside, last: never}
	p.index[k] = f
	p.flows = append(p.flows, f)
	return f
}

// drop discards the remaining CNPs of a flow.
func (p *Pacer) drop(f *paced) {
	if f.pos != heap.Outside {
		p.left -= f.left
		f.left = 0
		p.due.Remove(f.pos)
	}
}

// Len returns the number of CNPs that are still to be sent.
func (p *Pacer) Len() int { return p.left }

// Next returns when the next CNP is due, units.MaxTime when there is none.
func (p *Pacer) Next() units.Time {
	if p.due.Len() == 0 {
		return units.MaxTime
	}
	return p.due.First().at
}

// Pop returns the flow of a CNP that is due at now, or false when none is due. When the caller is
// late, the flow's next CNP is still at least the gap after now.
func (p *Pacer) Pop(now units.Time) (FlowKey, bool) {
	if p.due.Len() == 0 {
		return FlowKey{}, false
	}
	f := p.due.First()
	if f.at > now {
		return FlowKey{}, false
	}
	f.left--
	p.left--
	f.last = now
	if f.left == 0 {
		p.due.Remove(0)
	} else {
		f.at = max(f.at+f.spacing, now+p.gap)
		p.due.Fix(0)
	}
	return f.key, true
}

// cnpTTL is the TTL that NICs use. It is enough for any fabric of leaves and spines.
const cnpTTL = 64

// CNPBuilder makes the frames of notifications. Its owner uses it from one goroutine.
type CNPBuilder struct {
	// DSCP of the notifications, 0 to 63.
	DSCP uint8
	note packet.Notification
}

// Append appends the CNP that the flow's destination would send to its source about a queue pair of
// the source. Queue pair 0 means that none is known: the CNP is then for everything that the source
// sends to the destination, and NICs may ignore it. The Ethernet addresses are 0, because the
// pipeline that routes the frame sets them. The flow's addresses are of one version of IP.
func (b *CNPBuilder) Append(dst []byte, flow FlowKey, qp uint32) []byte {
	src, to := flow.Src.As16(), flow.Dst.As16()
	from := 0 // offset of the address in its 16-byte form
	if flow.Src.Is4() {
		from = 12
	}
	b.note.FlowSrc, b.note.FlowDst, b.note.DSCP, b.note.TTL, b.note.DestQP = flow.Src, flow.Dst, b.DSCP, cnpTTL, qp
	// The source port is entropy for ECMP, in the dynamic range of RFC 6335.
	b.note.SrcPort = 0xc000 | uint16(crc32.Update(crc32.ChecksumIEEE(src[from:]), crc32.IEEETable, to[from:]))&0x3fff
	return b.note.Append(dst)
}
