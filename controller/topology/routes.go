package topology

import (
	"net/netip"
	"slices"
)

// State is what is known to be broken. The zero value is a fabric in full health.
//
// They differ in what is done when there is no other way: a link that is down is never used, a
// suspect one is better than none, and one that works and is only held, because it comes and
// goes, is better than a suspect one. An operator's word makes a link down; a switch out of the
// controller's reach may well still forward, so it is only suspect.
type State struct {
	DownLinks       map[string]bool // by link name
	SuspectLinks    map[string]bool // by link name
	HeldLinks       map[string]bool // by link name
	SuspectSwitches map[string]bool // by switch name
}

// NextHop is one way out of a switch.
type NextHop struct {
	Port   uint32
	SrcMAC MAC
	DstMAC MAC
}

// Destination is hosts that a switch does the same for. It is immutable.
type Destination struct {
	// Group numbers the destination switch from 1, in the file's order; all hosts behind it share
	// their next hops, so a lost link changes one group, not one entry a host. It is 0 for a host on
	// the switch itself.
	Group    uint32
	Prefixes []netip.Prefix
}

// Route is what one switch does with packets to a destination.
type Route struct {
	*Destination
	// NextHops in the order of their ports; none when there is no way. They are never changed.
	NextHops []NextHop
}

const unreachable = -1

// Same reports whether two routes are equal.
func (r Route) Same(o Route) bool {
	return r.Destination == o.Destination && slices.Equal(r.NextHops, o.NextHops)
}

// Routes are those of all switches in one state of links and switches. They are immutable.
type Routes struct {
	graph *Graph
	links []condition
	trees []tree    // by place in Graph.leaves
	rows  [][]Route // by switch: a destination for each of Graph.leaves, then the switch's own hosts
}

// tree is the distances of all switches to one leaf.
type tree struct {
	to   *Destination
	dist [levels][]int // but for the first nil while nobody needs them
}

// The levels: a switch takes the links of the first level by which there is a way.
const (
	strict = iota // links that need not be avoided
	held          // those that are held, too
	loose         // all that are not down
	levels
)

// condition is what is known of a link.
type condition uint8

const (
	down condition = 1 << iota
	heldLink
	suspect  // the link itself
	suspectA // the switch at its end A
	suspectB
)

// Of returns the routes of a switch: one to each switch with hosts, the one to itself being empty, then
// one to each of its own hosts. A place always has the same switch or host; where there is no way the
// route has no next hops, and maybe no destination. The slice is the same one for Routes between which nothing changed for the switch.
func (r *Routes) Of(sw string) []Route { return r.rows[r.graph.index[sw]] }

// Leaves returns how many switches have hosts: so many routes of each switch come first, and those
// to its own hosts after them.
func (g *Graph) Leaves() int { return len(g.leaves) }

// Routes returns the routes in a state. last are those of the same graph in another state, or
// nil: what has not changed since then is not computed again. Every shortest path is used.
func (g *Graph) Routes(s State, last *Routes) *Routes {
	r := &Routes{graph: g, links: g.conditions(s), trees: make([]tree, len(g.leaves))}
	c := &computation{Routes: r, fresh: make([]bool, len(g.switches))}
	if last != nil {
		copy(r.trees, last.trees)
		r.rows = slices.Clone(last.rows)
	} else {
		last = &Routes{links: make([]condition, len(g.links))}
		r.rows = make([][]Route, len(g.switches))
		for i, n := range g.switches {
			r.rows[i], c.fresh[i] = make([]Route, len(g.leaves)+len(n.hosts)), true
		}
	}
	for link := range g.links {
		if r.links[link] != last.links[link] {
			c.changed = append(c.changed, link)
		}
	}
	for k := range g.leaves {
		c.destination(k, last.links)
		c.leaf(k)
	}
	return r
}

// computation is that of Routes from others.
type computation struct {
	*Routes
	changed []int  // links
	fresh   []bool // by switch: the row is not shared with the other Routes
	ports   []int  // scratch
}

// put changes a route.
func (c *computation) put(i, place int, r Route) {
	if !c.fresh[i] {
		c.rows[i], c.fresh[i] = slices.Clone(c.rows[i]), true
	}
	c.rows[i][place] = r
}

// destination finds out which hosts of a leaf can be reached.
func (c *computation) destination(k int, last []condition) {
	g, leaf := c.graph, c.graph.leaves[k]
	list := g.switches[leaf].hosts
	t := &c.trees[k]
	if t.to != nil && !slices.ContainsFunc(list, func(h int) bool { return (c.links[g.hosts[h].link]^last[g.hosts[h].link])&down != 0 }) {
		return
	}
	t.to = &Destination{Group: uint32(leaf + 1)}
	for place, h := range list {
		host := &g.hosts[h]
		own := Route{}
		if c.links[host.link]&down == 0 {
			t.to.Prefixes = append(t.to.Prefixes, host.own.Prefixes...)
			own = Route{host.own, host.last}
		}
		if at := len(g.leaves) + place; !c.rows[leaf][at].Same(own) {
			c.put(leaf, at, own)
		}
	}
	for i := range g.switches {
		if i != leaf {
			c.put(i, k, Route{t.to, c.rows[i][k].NextHops})
		}
	}
}

// leaf computes the routes to a leaf: of the switches at links that changed, where the distances
// of all are still right, and else of all.
func (c *computation) leaf(k int) {
	g, t := c.graph, &c.trees[k]
	right := t.dist[strict] != nil
	for level := 0; level < levels && right; level++ {
		right = t.dist[level] == nil || c.holds(k, level)
	}
	if right {
		for _, link := range c.changed {
			for _, i := range g.ends[link] {
				if i >= 0 {
					c.hops(k, i)
				}
			}
		}
		return
	}
	t.dist = [levels][]int{}
	for i := range g.switches {
		c.hops(k, i)
	}
}

// usable says which links may be used on the way to a leaf by a level. A leaf that is itself suspect has no
// replacement, so its own suspicion must not hide its links.
func (c *computation) usable(k, level, link int) bool {
	cond := c.links[link]
	switch {
	case level == loose:
		return cond&down == 0
	case level == held:
		cond &^= heldLink
	}
	switch cond {
	case 0:
		return true
	case suspectA:
		return c.graph.ends[link][0] == c.graph.leaves[k]
	case suspectB:
		return c.graph.ends[link][1] == c.graph.leaves[k]
	}
	return false
}

// holds reports whether distances are right although links changed. They are those of shortest paths
// when no link leads more than one step closer, and each switch has one that leads a step
// closer; only the switches at links that changed can have lost theirs.
func (c *computation) holds(k, level int) bool {
	g, dist := c.graph, c.trees[k].dist[level]
	usable := func(link int) bool { return c.usable(k, level, link) }
	for _, link := range c.changed {
		a, b := g.ends[link][0], g.ends[link][1]
		if a < 0 || b < 0 {
			continue
		}
		if dist[a] < dist[b] {
			a, b = b, a
		}
		switch {
		case usable(link):
			if dist[b] == unreachable && dist[a] != unreachable || dist[a]-dist[b] > 1 {
				return false
			}
		case dist[b] != unreachable && dist[a] == dist[b]+1:
			if c.ports = g.closer(c.ports[:0], a, dist, usable); len(c.ports) == 0 {
				return false
			}
		}
	}
	return true
}

// hops sets the next hops of switch i to a leaf.
func (c *computation) hops(k, i int) {
	g, t := c.graph, &c.trees[k]
	if i == g.leaves[k] {
		return
	}
	c.ports = c.ports[:0]
	for level := 0; level < levels && len(c.ports) == 0; level++ {
		usable := func(link int) bool { return c.usable(k, level, link) }
		if t.dist[level] == nil {
			t.dist[level] = g.distances(g.leaves[k], usable)
		}
		c.ports = g.closer(c.ports, i, t.dist[level], usable)
	}
	n := &g.switches[i]
	same := func(hops []NextHop) bool {
		return slices.EqualFunc(hops, c.ports, func(h NextHop, p int) bool { return h.Port == n.ports[p].number })
	}
	row := c.rows[i]
	if same(row[k].NextHops) {
		return
	}
	// Leaves beside each other often have the same next hops: these are there once.
	if k > 0 && same(row[k-1].NextHops) {
		c.put(i, k, Route{t.to, row[k-1].NextHops})
		return
	}
	hops := make([]NextHop, len(c.ports))
	for at, p := range c.ports {
		hops[at] = n.ports[p].hop()
	}
	c.put(i, k, Route{t.to, hops})
}

func (g *Graph) conditions(s State) []condition {
	list := make([]condition, len(g.links))
	for i, l := range g.links {
		for _, c := range []struct {
			is   bool
			what condition
		}{{s.DownLinks[l.Name], down}, {s.SuspectLinks[l.Name], suspect}, {s.HeldLinks[l.Name], heldLink}, {s.SuspectSwitches[l.A.Node], suspectA}, {s.SuspectSwitches[l.B.Node], suspectB}} {
			if c.is {
				list[i] |= c.what
			}
		}
	}
	return list
}

// closer appends the ports of switch i that lead one step closer, as indices.
func (g *Graph) closer(ports []int, i int, dist []int, usable func(link int) bool) []int {
	if dist[i] == unreachable {
		return ports
	}
	for n, p := range g.switches[i].ports {
		if p.peer >= 0 && dist[p.peer] == dist[i]-1 && usable(p.link) {
			ports = append(ports, n)
		}
	}
	return ports
}

// distances returns the number of links from every switch to the switch leaf.
func (g *Graph) distances(leaf int, usable func(link int) bool) []int {
	dist := make([]int, len(g.switches))
	for i := range dist {
		dist[i] = unreachable
	}
	dist[leaf] = 0
	queue := append(make([]int, 0, len(dist)), leaf)
	for n := 0; n < len(queue); n++ {
		i := queue[n]
		for _, p := range g.switches[i].ports {
			if p.peer >= 0 && dist[p.peer] == unreachable && usable(p.link) {
				dist[p.peer] = dist[i] + 1
				queue = append(queue, p.peer)
			}
		}
	}
	return dist
}
