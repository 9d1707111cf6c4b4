package cnpgen

import (
	"hash/crc32"

	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

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

// paced is a flow that has CNPs left, or whose last CNP is so recent that the gap delays the next.
type paced struct {
	key     FlowKey
	at      units.Time // of the next CNP
	last    units.Time // of the previous CNP; never when there is none
	spacing units.Time
	left    int
	seq     uint64 // breaks ties
	pos     int    // in due
	period  uint64 // of the last grant
}

// never is so long ago that never plus any gap is before all times.
const never = -units.MaxTime / 2

func newPacer(p Params) Pacer {
	return Pacer{interval: p.Interval, gap: p.CNPGap, index: map[FlowKey]*paced{}, due: heap.New(func(a, b *paced) bool {
		return a.at < b.at || a.at == b.at && a.seq < b.seq
	}, func(f *paced, at int) { f.pos = at })}
}

// add schedules a period's grants from now on. Each flow's first CNP is due as soon as the gap
// allows. A flow without a new grant loses its remaining CNPs. Memory is bounded by the number of
// flows in the grants of two periods.
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

// enter adds a flow.
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
	src, to := flow.Src.As16(), flow.Dst.As16()
	from := 0 // of the address in 16 bytes
	if flow.Src.Is4() {
		from = 12
	}
	b.note.FlowSrc, b.note.FlowDst, b.note.DSCP, b.note.TTL, b.note.DestQP = flow.Src, flow.Dst, b.DSCP, cnpTTL, qp
	// The source port is entropy for ECMP, in the dynamic range of RFC 6335.
	b.note.SrcPort = 0xc000 | uint16(crc32.Update(crc32.ChecksumIEEE(src[from:]), crc32.IEEETable, to[from:]))&0x3fff
	return b.note.Append(dst)
}
