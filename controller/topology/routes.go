package topology

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/cbd"
)

// State holds the broken links and switches. The zero value is a fabric in full health.
//
// Links in all three states are avoided. Where no other path is left, a held link is used (it works, but flaps),
// and if there is none, a suspect one. A link that is down is never used. An operator takes a link down; a switch
// out of the controller's reach may still forward, so it is only suspect.
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

// Destination holds the hosts of a rack: those that attach to the same leaves. It is immutable.
type Destination struct {
	// Group is the number of the action profile group of the next hops, from 1. First come the racks of one leaf in
	// the file's order, then the racks of several leaves, then a leaf's own hosts with several NICs there. All
	// hosts of a destination share a group, so a lost link changes one group. It is 0, at the leaf itself, for its
	// hosts with one NIC.
	Group uint32
	// Prefixes cover the hosts' addresses and no other rack's. At other switches they are as few as possible. At
	// the leaf itself there is a /32 or /128 for each address of a host whose link is up. The same holds for hosts
	// that have lost their links to other leaves.
	Prefixes []netip.Prefix
}

// Route is one switch's action on packets to a destination.
type Route struct {
	*Destination
	// NextHops in the order of their ports; none if the destination is unreachable. A leaf's route to its own hosts
	// has one for each of Prefixes. They are never changed.
	NextHops []NextHop
}

const unreachable = -1

// Same reports whether two routes of one graph are equal.
func (r Route) Same(o Route) bool {
	same := r.Destination == o.Destination || r.Group == o.Group && slices.Equal(r.Prefixes, o.Prefixes)
	return same && slices.Equal(r.NextHops, o.NextHops)
}

// Routes holds the routes of all switches for one State. It is immutable.
type Routes struct {
	graph *Graph
	rows  [][]Route          // by switch: a route for each of Graph.racks, then for each of the switch's local hosts
	moved map[netip.Addr]int // present rack of each address that has lost links to some of its leaves
}

// The levels: a switch uses the links of the first level at which there is a path.
const (
	strict = iota // links that need not be avoided
	held          // links of strict, and held links
	loose         // all links that are not down
	levels
)

// condition is the state of a link.
type condition uint8

const (
	down condition = 1 << iota
	heldLink
	suspect  // the link itself
	suspectA // the switch at its end A
	suspectB
)

// ForSwitch returns the routes of a switch, one to each rack, then one to each of its own hosts with several NICs there.
// An index always has the same destination.
func (r *Routes) ForSwitch(sw string) []Route { return r.rows[r.graph.index[sw]] }

// Routes returns the routes in a state. Every shortest path is used.
func (g *Graph) Routes(s State) *Routes {
	r := &Routes{graph: g, rows: make([][]Route, len(g.switches)), moved: map[netip.Addr]int{}}
	links := g.conditions(s)
	lost, moved := g.attached(links)
	for k, prefixes := range moved {
		for _, p := range prefixes {
			r.moved[p.Addr()] = k
		}
	}
	for i := range g.switches {
		r.rows[i] = make([]Route, len(g.racks), len(g.racks)+len(g.switches[i].local))
		for _, l := range g.switches[i].local {
			r.rows[i] = append(r.rows[i], l.without(lost))
		}
	}
	t := tree{graph: g, links: links, suspect: s.SuspectSwitches}
	last := make([][]NextHop, len(g.switches)) // leaves in a row often share their next hops
	for k, to := range g.racks {
		if more := moved[k]; len(more) > 0 {
			to.Destination = &Destination{to.Group, append(slices.Clip(to.Prefixes), more...)}
		}
		t.leaves, t.known = to.leaves, [levels]bool{}
		for i := range g.switches {
			r.rows[i][k].Destination = to.Destination
			switch {
			case len(to.leaves) == 1 && i == to.leaves[0]:
				r.rows[i][k] = g.own(i, lost)
			case len(to.Prefixes) > 0 && !slices.Contains(to.leaves, i):
				last[i] = t.hops(i, last[i])
				r.rows[i][k].NextHops = last[i]
			}
		}
	}
	return r
}

// attached returns the unused links to hosts (lost). It also returns the addresses of hosts that only a subset of
// their leaves still reaches, with the rack of that subset (moved). A suspect link to a host is used only if all
// links of the host are suspect.
func (g *Graph) attached(links []condition) (lost map[int]bool, moved map[int][]netip.Prefix) {
	lost, moved = map[int]bool{}, map[int][]netip.Prefix{}
	for i := range g.hosts {
		h := &g.hosts[i]
		bad := down
		if slices.ContainsFunc(h.nics, func(n nic) bool { return links[n.link]&(down|suspect) == 0 }) {
			bad |= suspect
		}
		var used []nic
		for _, n := range h.nics {
			if links[n.link]&bad != 0 {
				lost[n.link] = true
			} else if len(h.nics) > 1 {
				used = append(used, n)
			}
		}
		if leaves := h.leaves(used); len(leaves) > 0 && len(leaves) < len(g.racks[h.rack].leaves) {
			k := g.rackOf[rackKey(leaves)]
			moved[k] = append(moved[k], h.prefixes()...)
		}
	}
	return lost, moved
}

// own returns the route of a leaf to its own hosts.
func (g *Graph) own(leaf int, lost map[int]bool) Route {
	n := &g.switches[leaf]
	if !slices.ContainsFunc(n.nics, func(link int) bool { return lost[link] }) {
		return n.own
	}
	r := Route{Destination: &Destination{}}
	for i, link := range n.nics { // one for each prefix
		if !lost[link] {
			r.Prefixes = append(r.Prefixes, n.own.Prefixes[i])
			r.NextHops = append(r.NextHops, n.own.NextHops[i])
		}
	}
	return r
}

// without returns the route without the next hops whose links are lost.
func (l local) without(lost map[int]bool) Route {
	r := Route{Destination: l.Destination}
	for i, link := range l.links {
		if !lost[link] {
			r.NextHops = append(r.NextHops, l.NextHops[i])
		}
	}
	return r
}

// tree computes the shortest paths of all switches to one rack at a time.
type tree struct {
	graph   *Graph
	links   []condition
	suspect map[string]bool // switches
	leaves  []int           // leaves of the rack
	dist    [levels][]int   // distances to the nearest of ends
	known   [levels]bool    // whether each of dist has been computed
	ports   []int           // scratch
}

// ends returns the leaves of the rack at which paths of this level end. Suspect leaves count only if there are no
// others.
func (t *tree) ends(level int) []int {
	if len(t.leaves) == 1 || level == loose {
		return t.leaves
	}
	good := slices.DeleteFunc(slices.Clone(t.leaves), func(i int) bool { return t.suspect[t.graph.switches[i].name] })
	if len(good) == 0 {
		return t.leaves
	}
	return good
}

// usable returns which links may be used at a level on the way to the ends. An end that is itself suspect has no
// replacement, so its own suspicion must not hide its links.
func (t *tree) usable(level, link int, ends []int) bool {
	cond := t.links[link]
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
		return slices.Contains(ends, t.graph.ends[link][0])
	case suspectB:
		return slices.Contains(ends, t.graph.ends[link][1])
	}
	return false
}

// hops returns the next hops of switch i to the rack. It returns last if they have not changed.
func (t *tree) hops(i int, last []NextHop) []NextHop {
	g := t.graph
	t.ports = t.ports[:0]
	for level := 0; level < levels && len(t.ports) == 0; level++ {
		ends := t.ends(level)
		usable := func(link int) bool { return t.usable(level, link, ends) }
		if !t.known[level] {
			t.dist[level], t.known[level] = g.distances(t.dist[level], ends, usable), true
		}
		t.ports = g.closer(t.ports, i, t.dist[level], usable)
	}
	n := &g.switches[i]
	if slices.EqualFunc(last, t.ports, func(h NextHop, p int) bool { return h.Port == n.ports[p].Number }) {
		return last
	}
	hops := make([]NextHop, len(t.ports))
	for at, p := range t.ports {
		hops[at] = n.ports[p].hop()
	}
	return hops
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
	for n, e := range g.switches[i].edges {
		if e.peer >= 0 && dist[e.peer] == dist[i]-1 && usable(int(e.link)) {
			ports = append(ports, n)
		}
	}
	return ports
}

// distances returns the number of links from every switch to the nearest of some leaves, in dist unless that is
// nil.
func (g *Graph) distances(dist []int, leaves []int, usable func(link int) bool) []int {
	if dist == nil {
		dist = make([]int, len(g.switches))
	}
	for i := range dist {
		dist[i] = unreachable
	}
	queue := append(make([]int, 0, len(dist)), leaves...)
	for _, leaf := range leaves {
		dist[leaf] = 0
	}
	for n := 0; n < len(queue); n++ {
		i := queue[n]
		for _, e := range g.switches[i].edges {
			if e.peer >= 0 && dist[e.peer] == unreachable && usable(int(e.link)) {
				dist[e.peer] = dist[i] + 1
				queue = append(queue, int(e.peer))
			}
		}
	}
	return dist
}

// Cycles looks for cyclic buffer dependencies of the routes while the links of down are down. If failures is above
// 0, it also looks while up to that many further links fail. lossless names the switches that pause their senders.
// When ctx ends, no more failures are tried. A cycle is printed as "leaf1:3→spine1:1→spine1:2→leaf2:3→…→leaf1:3":
// of each link the sending end and the receiving end, all around.
func (g *Graph) Cycles(ctx context.Context, down map[string]bool, failures int, lossless func(sw string) bool) cbd.Cycles {
	ports := make([][]cbd.Port, len(g.switches))
	for i, s := range g.switches {
		for _, p := range s.ports {
			ports[i] = append(ports[i], cbd.Port{Peer: p.peer, Link: p.link})
		}
	}
	f := cbd.New(ports, func(n int) bool { return lossless(g.switches[n].name) }, func(leaf int, down []bool) [][]int {
		up := func(link int) bool { return !down[link] }
		dist, hops := g.distances(nil, []int{leaf}, up), make([][]int, len(g.switches))
		for i := range hops {
			hops[i] = g.closer(nil, i, dist, up)
		}
		return hops
	})
	state := make([]bool, len(g.links))
	for i, l := range g.links {
		state[i] = down[l.Name]
	}
	return f.Survey(ctx, state, failures, g.around, func(l int) string { return g.links[l].Name })
}

func (g *Graph) around(cycle []cbd.Channel) string {
	var b strings.Builder
	port := func(c cbd.Channel) *Port { return &g.switches[c.From].ports[c.Port] }
	end := func(c cbd.Channel) string { return fmt.Sprintf("%s:%d", g.switches[c.From].name, port(c).Number) }
	for _, c := range cycle {
		fmt.Fprintf(&b, "%s→%s:%d→", end(c), port(c).Peer, port(c).PeerPort)
	}
	return b.String() + end(cycle[0])
}
