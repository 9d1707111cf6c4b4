package topology

import (
	"cmp"
	"net/netip"
	"slices"
)

// State is what is known to be broken. The zero value is a fabric in full health.
//
// Down and Suspect differ in what is done when there is no other way: a link that is down
// is never used, a suspect one is better than none. An operator's word makes a link down;
// a switch out of the controller's reach may well still forward, so it is only suspect.
type State struct {
	DownLinks       map[string]bool // by link name
	SuspectLinks    map[string]bool // by link name
	SuspectSwitches map[string]bool // by switch name
}

// NextHop is one way out of a switch.
type NextHop struct {
	Port   uint32
	SrcMAC MAC
	DstMAC MAC
}

// Route is what one switch does with packets to one host.
type Route struct {
	Prefix netip.Prefix
	// Group numbers the destination switch from 1, in the file's order; all hosts behind
	// it share their next hops, so a lost link changes one group, not one entry a host.
	// It is 0 when the host hangs on this switch.
	Group uint32
	// NextHops in the order of their ports; at least one.
	NextHops []NextHop
}

const unreachable = -1

// SameHosts reports whether two lists of routes of one switch have the same hosts behind the
// same groups, and those of the switch itself at the same ports. They may differ in the next
// hops of groups.
func SameHosts(a, b []Route) bool {
	return slices.EqualFunc(a, b, func(x, y Route) bool {
		return x.Prefix == y.Prefix && x.Group == y.Group && (x.Group != 0 || x.NextHops[0] == y.NextHops[0])
	})
}

// SamePaths reports whether two lists of routes are equal.
func SamePaths(a, b []Route) bool {
	return slices.EqualFunc(a, b, func(x, y Route) bool {
		return x.Prefix == y.Prefix && x.Group == y.Group && slices.Equal(x.NextHops, y.NextHops)
	})
}

// Routes returns the routes of every switch, with the hosts in the file's order. A host
// that cannot be reached from a switch has no route there. Every shortest path is used.
// Routes of one group share their next hops.
func (g *Graph) Routes(s State) map[string][]Route {
	usable := g.usable(s)
	lists := make([][]Route, len(g.switches))
	leaves := map[int][][]NextHop{} // of every switch, by leaf
	for _, h := range g.hosts {
		if usable.down[h.link] {
			continue
		}
		hops, done := leaves[h.leaf]
		if !done {
			ports := g.towards(h.leaf, s, usable)
			hops = make([][]NextHop, len(ports))
			for i, list := range ports {
				hops[i] = g.nextHops(i, list)
			}
			leaves[h.leaf] = hops
		}
		prefix := netip.PrefixFrom(h.IPv4, 32)
		for i := range g.switches {
			switch {
			case i == h.leaf:
				lists[i] = append(lists[i], Route{Prefix: prefix, NextHops: g.last(h)})
			case len(hops[i]) > 0:
				lists[i] = append(lists[i], Route{Prefix: prefix, Group: uint32(h.leaf + 1), NextHops: hops[i]})
			}
		}
	}
	routes := make(map[string][]Route, len(g.switches))
	for i, list := range lists {
		if len(list) > 0 {
			routes[g.switches[i].name] = list
		}
	}
	return routes
}

// usable says which links may be used: none that is down, and none that is avoided where there is
// another way.
type usable struct{ down, avoid []bool }

func (g *Graph) usable(s State) usable {
	u := usable{make([]bool, len(g.links)), make([]bool, len(g.links))}
	for i, l := range g.links {
		u.down[i] = s.DownLinks[l.Name]
		u.avoid[i] = u.down[i] || s.SuspectLinks[l.Name] || s.SuspectSwitches[l.A.Node] || s.SuspectSwitches[l.B.Node]
	}
	return u
}

// towards returns the ports of every switch that lead one step closer to the switch leaf, as
// indices into its ports.
func (g *Graph) towards(leaf int, s State, u usable) [][]int {
	// A leaf that is itself suspect has no replacement: reach it through healthy
	// links where these exist, so its own suspicion must not hide them.
	strict := func(link int) bool { return !u.avoid[link] || g.onlySwitchSuspect(s, u, link, leaf) }
	loose := func(link int) bool { return !u.down[link] }
	healthy, all := g.distances(leaf, strict), []int(nil)
	hops := make([][]int, len(g.switches))
	for i := range hops {
		if i == leaf {
			continue
		}
		if hops[i] = g.closer(i, healthy, strict); len(hops[i]) > 0 {
			continue
		}
		if all == nil {
			all = g.distances(leaf, loose)
		}
		hops[i] = g.closer(i, all, loose)
	}
	return hops
}

// last returns the port of a host on its own switch.
func (g *Graph) last(h Host) []NextHop {
	ports := g.switches[h.leaf].ports
	i, _ := slices.BinarySearchFunc(ports, h.Port, func(p port, n uint32) int { return cmp.Compare(p.number, n) })
	return []NextHop{{Port: ports[i].number, SrcMAC: ports[i].mac, DstMAC: ports[i].peerMAC}}
}

// onlySwitchSuspect reports whether a link is to be avoided for nothing but the suspicion
// against the switch leaf, which is where the packets have to go.
func (g *Graph) onlySwitchSuspect(s State, u usable, link, leaf int) bool {
	l, name := g.links[link], g.switches[leaf].name
	if u.down[link] || s.SuspectLinks[l.Name] {
		return false
	}
	return l.A.Node == name && !s.SuspectSwitches[l.B.Node] || l.B.Node == name && !s.SuspectSwitches[l.A.Node]
}

// closer returns the ports of switch i that lead one step closer.
func (g *Graph) closer(i int, dist []int, usable func(link int) bool) []int {
	if dist[i] == unreachable {
		return nil
	}
	var closer []int
	for n, p := range g.switches[i].ports {
		if p.peer >= 0 && usable(p.link) && dist[p.peer] == dist[i]-1 {
			closer = append(closer, n)
		}
	}
	return closer
}

// nextHops returns the next hops by ports of switch i.
func (g *Graph) nextHops(i int, ports []int) []NextHop {
	var hops []NextHop
	for _, n := range ports {
		p := &g.switches[i].ports[n]
		hops = append(hops, NextHop{Port: p.number, SrcMAC: p.mac, DstMAC: p.peerMAC})
	}
	return hops
}

// distances returns the number of links from every switch to the switch leaf.
func (g *Graph) distances(leaf int, usable func(link int) bool) []int {
	dist := make([]int, len(g.switches))
	for i := range dist {
		dist[i] = unreachable
	}
	dist[leaf] = 0
	queue := []int{leaf}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, p := range g.switches[i].ports {
			if p.peer >= 0 && dist[p.peer] == unreachable && usable(p.link) {
				dist[p.peer] = dist[i] + 1
				queue = append(queue, p.peer)
			}
		}
	}
	return dist
}
