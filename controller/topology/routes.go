package topology

import "net/netip"

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

// Routes returns the routes of every switch, with the hosts in the file's order. A host
// that cannot be reached from a switch has no route there. Every shortest path is used.
func (g *Graph) Routes(s State) map[string][]Route {
	usable := func(link int, strict bool) bool {
		l := g.links[link]
		if s.DownLinks[l.Name] {
			return false
		}
		return !strict || !s.SuspectLinks[l.Name] && !s.SuspectSwitches[l.A.Node] && !s.SuspectSwitches[l.B.Node]
	}
	routes := make(map[string][]Route, len(g.switches))
	leaves := map[int][2][]int{}
	for _, h := range g.hosts {
		if !usable(h.link, false) {
			continue
		}
		dist, done := leaves[h.leaf]
		if !done {
			// A leaf that is itself suspect has no replacement: reach it through healthy
			// links where these exist, so its own suspicion must not hide them.
			strict := func(link int) bool { return usable(link, true) || g.onlySwitchSuspect(s, link, h.leaf) }
			dist = [2][]int{g.distances(h.leaf, strict), g.distances(h.leaf, func(l int) bool { return usable(l, false) })}
			leaves[h.leaf] = dist
		}
		g.addRoutes(routes, h, s, dist, usable)
	}
	return routes
}

// onlySwitchSuspect reports whether a link is to be avoided for nothing but the suspicion
// against the switch leaf, which is where the packets have to go.
func (g *Graph) onlySwitchSuspect(s State, link, leaf int) bool {
	l, name := g.links[link], g.switches[leaf].name
	if s.DownLinks[l.Name] || s.SuspectLinks[l.Name] {
		return false
	}
	return l.A.Node == name && !s.SuspectSwitches[l.B.Node] || l.B.Node == name && !s.SuspectSwitches[l.A.Node]
}

func (g *Graph) addRoutes(routes map[string][]Route, h Host, s State, dist [2][]int, usable func(int, bool) bool) {
	prefix := netip.PrefixFrom(h.IPv4, 32)
	for i, n := range g.switches {
		if i == h.leaf {
			for _, p := range n.ports {
				if p.number == h.Port {
					hop := NextHop{Port: p.number, SrcMAC: p.mac, DstMAC: p.peerMAC}
					routes[n.name] = append(routes[n.name], Route{Prefix: prefix, NextHops: []NextHop{hop}})
				}
			}
			continue
		}
		hops := g.nextHops(i, dist[0], func(l int) bool { return usable(l, true) || g.onlySwitchSuspect(s, l, h.leaf) })
		if len(hops) == 0 {
			hops = g.nextHops(i, dist[1], func(l int) bool { return usable(l, false) })
		}
		if len(hops) > 0 {
			routes[n.name] = append(routes[n.name], Route{Prefix: prefix, Group: uint32(h.leaf + 1), NextHops: hops})
		}
	}
}

// nextHops returns the ports of switch i that lead one step closer.
func (g *Graph) nextHops(i int, dist []int, usable func(link int) bool) []NextHop {
	if dist[i] == unreachable {
		return nil
	}
	var hops []NextHop
	for _, p := range g.switches[i].ports {
		if p.peer >= 0 && usable(p.link) && dist[p.peer] == dist[i]-1 {
			hops = append(hops, NextHop{Port: p.number, SrcMAC: p.mac, DstMAC: p.peerMAC})
		}
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
