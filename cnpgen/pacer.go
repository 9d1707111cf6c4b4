package cnpgen

import (
	"hash/crc32"

	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Pacer spreads the CNPs of a period evenly over it. It never sends two to one flow within the gap
// (§III-B.4). When the next period begins, a flow's new grant replaces the CNPs that are left of the
// old one. The caller owns the Pacer, which is not safe for concurrent use.
type Pacer struct {
	interval, gap units.Time

	flows []paced
	free  []int32
	index map[FlowKey]int32
	due   heap.Heap[int32] // flows with CNPs left, earliest first
	seq   uint64
	left  int
	tick  uint64 // number of calls of Add
}

// paced is a flow that has CNPs left, or whose last CNP is so recent that the gap delays the next.
type paced struct {
	key     FlowKey
	at      units.Time // of the next CNP
	last    units.Time // of the previous CNP; never when there is none
	spacing units.Time
	left    int
	seq     uint64 // breaks ties
	pos     int    // in due
	tick    uint64 // the Pacer's tick at the last grant; 0 for a free slot
}

// never is so long ago that never plus any gap is before all times.
const never = -units.MaxTime / 2

// NewPacer returns a pacer for the parameters' interval and gap.
func NewPacer(p Params) (*Pacer, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	pacer := &Pacer{interval: p.Interval, gap: p.CNPGap, index: make(map[FlowKey]int32)}
	pacer.due = heap.New(func(a, b int32) bool {
		x, y := &pacer.flows[a], &pacer.flows[b]
		return x.at < y.at || x.at == y.at && x.seq < y.seq
	}, func(i int32, at int) { pacer.flows[i].pos = at })
	return pacer, nil
}

// Add schedules a period's grants from now on. Each flow's first CNP is due as soon as the gap
// allows. A flow without a new grant loses its remaining CNPs. Memory is bounded by the number of
// flows in the grants of two periods.
func (p *Pacer) Add(now units.Time, grants []Grant) {
	p.tick++
	for _, g := range grants {
		if g.CNPs > 0 {
			p.add(now, g)
		}
	}
	for i := range p.flows {
		f := &p.flows[i]
		if f.tick == p.tick || f.tick == 0 {
			continue
		}
		p.drop(f)
		if f.last+p.gap <= now {
			delete(p.index, f.key)
			*f = paced{pos: heap.Outside}
			p.free = append(p.free, int32(i))
		}
	}
}

func (p *Pacer) add(now units.Time, g Grant) {
	i, ok := p.index[g.Key]
	if !ok {
		i = p.slot()
		p.index[g.Key] = i
		p.flows[i] = paced{key: g.Key, pos: heap.Outside, last: never}
	}
	f := &p.flows[i]
	p.drop(f)
	p.seq++
	f.at = max(now, f.last+p.gap)
	f.left, f.seq, f.tick = g.CNPs, p.seq, p.tick
	f.spacing = max(p.gap, (now+p.interval-f.at)/units.Time(g.CNPs))
	p.left += g.CNPs
	p.due.Push(i)
}

// drop discards the remaining CNPs of a flow.
func (p *Pacer) drop(f *paced) {
	if f.pos != heap.Outside {
		p.left -= f.left
		f.left = 0
		p.due.Remove(f.pos)
	}
}

func (p *Pacer) slot() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.flows = append(p.flows, paced{pos: heap.Outside})
	return int32(len(p.flows) - 1)
}

// Len returns the number of CNPs that are still to be sent.
func (p *Pacer) Len() int { return p.left }

// Next returns when the next CNP is due, units.MaxTime when there is none.
func (p *Pacer) Next() units.Time {
	if p.due.Len() == 0 {
		return units.MaxTime
	}
	return p.flows[p.due.First()].at
}

// Pop returns the flow of a CNP that is due at now, or false when none is due. When the caller is
// late, the flow's next CNP is still at least the gap after now.
func (p *Pacer) Pop(now units.Time) (FlowKey, bool) {
	if p.due.Len() == 0 {
		return FlowKey{}, false
	}
	i := p.due.First()
	f := &p.flows[i]
	if f.at > now {
		return FlowKey{}, false
	}
	f.left--
	p.left--
	f.last = now
	if f.left == 0 {
		p.due.Remove(0)
		return f.key, true
	}
	f.at = max(f.at+f.spacing, now+p.gap)
	p.due.Fix(0)
	return f.key, true
}

// cnpTTL is enough for any fabric of leaves and spines, and what NICs use.
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
	var raw [32]byte
	addresses := raw[:0]
	if flow.Src.Is4() {
		src, to := flow.Src.As4(), flow.Dst.As4()
		addresses = append(append(addresses, src[:]...), to[:]...)
	} else {
		src, to := flow.Src.As16(), flow.Dst.As16()
		addresses = append(append(addresses, src[:]...), to[:]...)
	}
	b.note.FlowSrc, b.note.FlowDst, b.note.DSCP, b.note.TTL, b.note.DestQP = flow.Src, flow.Dst, b.DSCP, cnpTTL, qp
	// The source port is entropy for ECMP, in the dynamic range of RFC 6335.
	b.note.SrcPort = 0xc000 | uint16(crc32.ChecksumIEEE(addresses))&0x3fff
	return b.note.Append(dst)
}
