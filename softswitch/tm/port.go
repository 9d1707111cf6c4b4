package tm

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/headgate/headgate/units"
)

// group holds the queues of one level. They take turns by deficit round robin.
type group struct {
	queues  []int
	mask    uint32 // bit q: queue q is in the group
	current int    // index into queues of the queue whose turn it is
	visited bool   // the queue has received its quantum of this round
}

type port struct {
	id      uint32
	rate    units.Rate // 0: unlimited
	free    units.Time // when the last bit of the previous frame leaves
	queues  []queue
	groups  []group // highest level first
	total   int     // packets in all queues
	full    uint32  // bit q: queue q is not empty
	pausing uint32  // bit q: queue q has pauses that may still delay a departure

	departure units.Time // departure of the next packet, while the port is in the heap
	index     int        // index in the heap; -1 when the port is not in it
	order     int        // rank in which the port was added, to break ties

	sending int         // queue of the packet between Dequeue and Complete; -1 for none
	wire    units.Bytes // bytes of that packet on the wire so far
	sent    Counter
}

func newPort(id uint32, order int, rate units.Rate, c *Config) *port {
	p := &port{id: id, order: order, rate: rate, index: -1, sending: -1, queues: make([]queue, c.Queues)}
	for q := range p.queues {
		p.queues[q].limit = c.Limit
	}
	return p
}

func (p *port) schedule(shares []Share) {
	p.groups = nil
	levels := map[int][]int{}
	for q, s := range shares {
		p.queues[q].quantum, p.queues[q].deficit = cmp.Or(s.Quantum, DefaultQuantum), 0
		levels[s.Level] = append(levels[s.Level], q)
	}
	for level := range levels {
		g := group{queues: levels[level]}
		for _, q := range g.queues {
			g.mask |= 1 << q
		}
		p.groups = append(p.groups, g)
	}
	slices.SortFunc(p.groups, func(a, b group) int {
		return shares[b.queues[0]].Level - shares[a.queues[0]].Level
	})
}

// push and pop keep total and full in step with the queues.
func (p *port) push(i int, s slot) {
	q := &p.queues[i]
	*q.Push() = s
	q.bytes += s.bytes
	p.total++
	p.full |= 1 << i
}

func (p *port) pop(i int) slot {
	q := &p.queues[i]
	s := q.Pop()
	q.bytes -= s.bytes
	p.total--
	if q.Len() == 0 {
		p.full &^= 1 << i
	}
	return s
}

// next returns when the port's next packet leaves: as soon as the port is free and a packet waits
// in a queue that is not paused. It returns MaxTime if no packet waits.
func (p *port) next() units.Time {
	if p.total == 0 {
		return units.MaxTime
	}
	if p.full&p.pausing != 0 {
		return p.nextPaused()
	}
	first := units.MaxTime
	for left := p.full; left != 0; left &= left - 1 {
		first = min(first, p.queues[bits.TrailingZeros32(left)].ready())
	}
	return max(first, p.free)
}

// pick chooses the queue that sends at time at. It looks only at packets that arrived by then, so
// that a late caller gets the same choice as a punctual one. At least one queue must be ready at
// that time.
func (p *port) pick(at units.Time) int {
	for g := range p.groups {
		if p.full&p.groups[g].mask == 0 {
			p.groups[g].visited = false // resets the level as if it had been tried and had no ready queue
			continue
		}
		if q := p.groups[g].pick(p, at); q >= 0 {
			return q
		}
	}
	panic("tm: no queue is ready")
}

// pick runs deficit round robin among the queues that are ready. It returns -1 when none is.
// A queue that has nothing to send loses its deficit and its turn. A paused queue loses its
// turn and keeps at most the deficit that its first packet needs. A queue whose turn is over
// keeps no more than that either, so a long pause is not followed by a long burst.
func (g *group) pick(p *port, at units.Time) int {
	if len(g.queues) == 1 {
		if q := g.queues[0]; p.queues[q].ready() <= at && !p.paused(q, at) {
			return q
		}
		return -1
	}
	for skipped := 0; skipped < len(g.queues); {
		q := &p.queues[g.queues[g.current]]
		if q.ready() > at {
			q.deficit = 0
			g.advance()
			skipped++
			continue
		}
		if p.paused(g.queues[g.current], at) {
			q.deficit = min(q.deficit, q.Front().bytes)
			g.advance()
			skipped++
			continue
		}
		skipped = 0
		if !g.visited {
			g.visited = true
			q.deficit += q.quantum
		}
		if q.Front().bytes <= q.deficit {
			return g.queues[g.current]
		}
		g.advance()
	}
	return -1
}

func (g *group) advance() {
	g.visited = false
	if g.current++; g.current == len(g.queues) {
		g.current = 0
	}
}
