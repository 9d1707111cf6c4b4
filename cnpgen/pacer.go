package cnpgen

import "github.com/headgate/headgate/units"

// Pacer sends the CNPs of a period evenly over it, never two to one flow within the gap
// (§III-B.4). What a flow has left of a period when the next begins is replaced by its new
// grant. Its caller owns it; it is not safe for concurrent use.
type Pacer struct {
	interval, gap units.Time

	flows []paced
	free  []int32
	index map[FlowKey]int32
	heap  []int32 // of flows with CNPs left, earliest first
	seq   uint64
	left  int
	tick  uint64 // of Add
}

// paced is a flow with CNPs left, or one whose last is so recent that it bounds the next.
type paced struct {
	key     FlowKey
	at      units.Time // of the next CNP
	last    units.Time // of the one before, never for none
	spacing units.Time
	left    int
	seq     uint64 // breaks ties
	pos     int32  // in the heap, -1 for none
	tick    uint64 // of its last grant; 0 for a free slot
}

// never is long before any time, and a gap later still is.
const never = -units.MaxTime / 2

// NewPacer returns a pacer for the parameters' interval and gap.
func NewPacer(p Params) (*Pacer, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	return &Pacer{interval: p.Interval, gap: p.CNPGap, index: make(map[FlowKey]int32)}, nil
}

// Add schedules a period's grants from now on, each flow's first as soon as its gap allows.
// Flows with CNPs left that have no new grant lose them. Memory is bounded by the flows of
// the grants of two periods.
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
			*f = paced{pos: -1}
			p.free = append(p.free, int32(i))
		}
	}
}

func (p *Pacer) add(now units.Time, g Grant) {
	i, ok := p.index[g.Key]
	if !ok {
		i = p.slot()
		p.index[g.Key] = i
		p.flows[i] = paced{key: g.Key, pos: -1, last: never}
	}
	f := &p.flows[i]
	p.drop(f)
	p.seq++
	f.at = max(now, f.last+p.gap)
	f.left, f.seq, f.tick = g.CNPs, p.seq, p.tick
	f.spacing = max(p.gap, (now+p.interval-f.at)/units.Time(g.CNPs))
	p.left += g.CNPs
	p.push(i)
}

// drop takes what a flow has left.
func (p *Pacer) drop(f *paced) {
	if f.pos >= 0 {
		p.left -= f.left
		f.left = 0
		p.remove(f.pos)
	}
}

func (p *Pacer) slot() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.flows = append(p.flows, paced{pos: -1})
	return int32(len(p.flows) - 1)
}

// Len returns the CNPs that are still to be sent.
func (p *Pacer) Len() int { return p.left }

// Next returns when the next CNP is due, units.MaxTime when there is none.
func (p *Pacer) Next() units.Time {
	if len(p.heap) == 0 {
		return units.MaxTime
	}
	return p.flows[p.heap[0]].at
}

// Pop returns the flow of a CNP that is due at now, or false when none is. A caller that is
// late gets what has become due; the flow's next CNP is then at least the gap after now.
func (p *Pacer) Pop(now units.Time) (FlowKey, bool) {
	if len(p.heap) == 0 {
		return FlowKey{}, false
	}
	i := p.heap[0]
	f := &p.flows[i]
	if f.at > now {
		return FlowKey{}, false
	}
	f.left--
	p.left--
	f.last = now
	if f.left == 0 {
		p.remove(0)
		return f.key, true
	}
	f.at = max(f.at+f.spacing, now+p.gap)
	p.down(0)
	return f.key, true
}

func (p *Pacer) before(a, b int32) bool {
	x, y := &p.flows[a], &p.flows[b]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

func (p *Pacer) set(pos int, i int32) {
	p.heap[pos] = i
	p.flows[i].pos = int32(pos)
}

func (p *Pacer) push(i int32) {
	p.heap = append(p.heap, i)
	p.set(len(p.heap)-1, i)
	p.up(len(p.heap) - 1)
}

func (p *Pacer) remove(pos int32) {
	last := len(p.heap) - 1
	p.flows[p.heap[pos]].pos = -1
	moved := p.heap[last]
	p.heap = p.heap[:last]
	if int(pos) == last {
		return
	}
	p.set(int(pos), moved)
	p.down(int(pos))
	p.up(int(p.flows[moved].pos))
}

func (p *Pacer) up(pos int) {
	for pos > 0 {
		parent := (pos - 1) / 2
		if !p.before(p.heap[pos], p.heap[parent]) {
			return
		}
		a, b := p.heap[pos], p.heap[parent]
		p.set(pos, b)
		p.set(parent, a)
		pos = parent
	}
}

func (p *Pacer) down(pos int) {
	for {
		child := 2*pos + 1
		if child >= len(p.heap) {
			return
		}
		if child+1 < len(p.heap) && p.before(p.heap[child+1], p.heap[child]) {
			child++
		}
		if !p.before(p.heap[child], p.heap[pos]) {
			return
		}
		a, b := p.heap[pos], p.heap[child]
		p.set(pos, b)
		p.set(child, a)
		pos = child
	}
}
