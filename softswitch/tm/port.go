package tm

import (
	"math/bits"
	"slices"

	"github.com/headgate/headgate/units"
)

// group is the queues of one level, which take turns.
type group struct {
	queues  []int
	mask    uint32 // bits of queues
	turn    int    // index into queues
	visited bool   // the queue whose turn it is has had its quantum of this round
}

// port is one egress port.
type port struct {
	id     uint32
	rate   units.Rate // 0: unlimited
	free   units.Time // when the frame before has left
	queues []queue
	groups []group // highest level first
	total  int     // packets in all queues
	full   uint32  // bit q: queue q is not empty
	held   uint32  // bit q: queue q has been paused not long ago

	departure units.Time // of the next packet, while the port stands in the heap
	index     int        // in the heap; -1 when not
	order     int        // in which ports were added, to break ties

	sending int         // queue of the packet between Dequeue and Done; -1 when none
	wire    units.Bytes // what it has sent so far
	sent    Counter
}

func newPort(id uint32, order int, rate units.Rate, c *Config) *port {
	p := &port{id: id, order: order, rate: rate, index: -1, sending: -1, queues: make([]queue, c.Queues)}
	levels := map[int][]int{}
	for q, s := range c.Schedule {
		p.queues[q].limit = c.Limit
		p.queues[q].quantum = s.Quantum
		if s.Quantum == 0 {
			p.queues[q].quantum = DefaultQuantum
		}
		levels[s.Level] = append(levels[s.Level], q)
	}
	for level := range levels {
		g := group{queues: levels[level]}
		for _, q := range g.queues {
			g.mask |= 1 << q
		}
		p.groups = append(p.groups, g)
	}
	// The group of the first queue's level decides; levels differ between groups.
	slices.SortFunc(p.groups, func(a, b group) int {
		return c.Schedule[b.queues[0]].Level - c.Schedule[a.queues[0]].Level
	})
	return p
}

// push and pop keep what the port knows of all its queues.
func (p *port) push(i int, s slot) {
	p.queues[i].push(s)
	p.total++
	p.full |= 1 << i
}

func (p *port) pop(i int) slot {
	s := p.queues[i].pop()
	p.total--
	if p.queues[i].n == 0 {
		p.full &^= 1 << i
	}
	return s
}

// next returns when the port's next packet leaves: when the port is free and a packet is
// there in a queue that is not paused. MaxTime when it has none.
func (p *port) next() units.Time {
	if p.total == 0 {
		return units.MaxTime
	}
	if p.full&p.held != 0 {
		return p.nextHeld()
	}
	first := units.MaxTime
	for left := p.full; left != 0; left &= left - 1 {
		first = min(first, p.queues[bits.TrailingZeros32(left)].ready())
	}
	return max(first, p.free)
}

// pick chooses the queue that sends at time at. Only packets that had come by then count,
// so a late caller gets the choice that an early one would have got. At least one queue is
// ready at that time.
func (p *port) pick(at units.Time) int {
	for g := range p.groups {
		if p.full&p.groups[g].mask == 0 {
			p.groups[g].visited = false // as pick leaves a group without ready queues
			continue
		}
		if q := p.groups[g].pick(p, at); q >= 0 {
			return q
		}
	}
	panic("tm: no queue is ready")
}

// pick runs deficit round robin among the queues that are ready, -1 when none is. A queue
// that has nothing to send loses its deficit and its turn. One that is paused loses its
// turn, and of its deficit what is more than its first packet needs: as much as a queue may
// keep whose turn is over, so that no pause makes up for long silence with a long burst.
func (g *group) pick(p *port, at units.Time) int {
	if len(g.queues) == 1 {
		if q := g.queues[0]; p.queues[q].ready() <= at && !p.paused(q, at) {
			return q
		}
		return -1
	}
	for skipped := 0; skipped < len(g.queues); {
		q := &p.queues[g.queues[g.turn]]
		if q.ready() > at {
			q.deficit = 0
			g.pass()
			skipped++
			continue
		}
		if p.paused(g.queues[g.turn], at) {
			q.deficit = min(q.deficit, q.front().bytes)
			g.pass()
			skipped++
			continue
		}
		skipped = 0
		if !g.visited {
			g.visited = true
			q.deficit += q.quantum
		}
		if q.front().bytes <= q.deficit {
			return g.queues[g.turn]
		}
		g.pass()
	}
	return -1
}

func (g *group) pass() {
	g.visited = false
	if g.turn++; g.turn == len(g.queues) {
		g.turn = 0
	}
}
