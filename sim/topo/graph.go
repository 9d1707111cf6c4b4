// Package topo describes fabrics: hosts, switches and the links between them, the usual
// shapes, and equal-cost shortest paths through them.
package topo

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Link joins two nodes in both directions.
type Link struct {
	A, B int // nodes
	// PortA and PortB are the numbers of the ports at both ends. Graph.ECMP chooses among next hops in their
	// order.
	PortA, PortB uint32
	Rate         units.Rate
	Delay        units.Time // propagation
	// Jitter is the largest extra delay of a frame, drawn uniformly from 0 on for each frame. Frames keep their
	// order.
	Jitter units.Time
	// Spread is the largest extra delay of the link, drawn uniformly from 0 on once per run. Both directions have
	// the same.
	Spread units.Time
	Down   bool // failed from the start
}

// MaxJitter bounds a link's jitter.
const MaxJitter = 2 * units.Millisecond

// Graph is a fabric. Nodes are numbered: hosts from 0, switches after them. A host has one or several links; a
// packet leaves by the link that is nearest to its destination. A Graph does not change once it is in use.
type Graph struct {
	Hosts    int
	Switches int
	Names    []string // names of all nodes
	Links    []Link
	ECMP     *ECMP // how switches choose among next hops; nil: by Flow.Hash
}

// Nodes returns the number of hosts and switches.
func (g *Graph) Nodes() int { return g.Hosts + g.Switches }

// IsHost reports whether a node is a host.
func (g *Graph) IsHost(node int) bool { return node < g.Hosts }

// Find returns the node of a name.
func (g *Graph) Find(name string) (node int, ok bool) {
	for i, n := range g.Names {
		if n == name {
			return i, true
		}
	}
	return 0, false
}

// LinkBetween returns a link that joins two nodes in either direction.
func (g *Graph) LinkBetween(a, b int) (link int, ok bool) {
	for i, l := range g.Links {
		if l.A == a && l.B == b || l.A == b && l.B == a {
			return i, true
		}
	}
	return 0, false
}

// addHost and addSwitch are for builders, which add all hosts first.
func (g *Graph) addHosts(n int, format string) {
	for i := range n {
		g.Names = append(g.Names, fmt.Sprintf(format, i))
	}
	g.Hosts += n
}

// addSwitches returns the first of the new nodes.
func (g *Graph) addSwitches(n int, format string) int {
	first := g.Nodes()
	for i := range n {
		g.Names = append(g.Names, fmt.Sprintf(format, i))
	}
	g.Switches += n
	return first
}

// joinAll joins each of na nodes from a on with each of nb nodes from b on.
func (g *Graph) joinAll(a, na, b, nb int, l Line) {
	for i := range na {
		for j := range nb {
			g.join(a+i, b+j, l)
		}
	}
}

func (g *Graph) join(a, b int, l Line) {
	g.Links = append(g.Links, Link{A: a, B: b, Rate: l.Rate, Delay: l.Delay, Jitter: l.Jitter, Spread: l.Spread})
}

// Check returns an error that names the first fault: a link to nowhere, without a rate or with a negative delay, a
// host without a link, or two hosts without a path of working links.
func (g *Graph) Check() error {
	if g.Hosts < 2 {
		return fmt.Errorf("hosts: %d, want at least 2", g.Hosts)
	}
	degree := make([]int, g.Nodes())
	for i, l := range g.Links {
		switch {
		case l.A < 0 || l.A >= g.Nodes() || l.B < 0 || l.B >= g.Nodes() || l.A == l.B:
			return fmt.Errorf("link %d joins nodes %d and %d, want two different ones of 0 to %d", i, l.A, l.B, g.Nodes()-1)
		case l.Rate < units.Mbps || l.Rate > 1600*units.Gbps:
			return fmt.Errorf("link %s–%s: rate %v, want 1Mbps to 1600Gbps", g.Names[l.A], g.Names[l.B], l.Rate)
		case l.Delay < 0 || l.Delay > units.Second:
			return fmt.Errorf("link %s–%s: delay %v, want 0 to 1s", g.Names[l.A], g.Names[l.B], l.Delay)
		case l.Spread < 0 || l.Spread > units.Second:
			return fmt.Errorf("link %s–%s: spread %v, want 0 to 1s", g.Names[l.A], g.Names[l.B], l.Spread)
		case l.Jitter < 0 || l.Jitter > MaxJitter:
			return fmt.Errorf("link %s–%s: jitter %v, want 0 to %v", g.Names[l.A], g.Names[l.B], l.Jitter, MaxJitter)
		}
		degree[l.A]++
		degree[l.B]++
	}
	for h := range g.Hosts {
		if degree[h] == 0 {
			return fmt.Errorf("host %s has no link, want at least 1", g.Names[h])
		}
	}
	return g.connected()
}

func (g *Graph) connected() error {
	p := NewPorts(g)
	dist := NewRouter(g, p).towards(0).dist
	for h := 1; h < g.Hosts; h++ {
		if dist[h] < 0 {
			return fmt.Errorf("no path of working links joins hosts %s and %s", g.Names[0], g.Names[h])
		}
	}
	return nil
}

// Ports numbers the two ends of every link: a port is where a link attaches to a node. The
// ports of a node are consecutive, in the order of the graph's links.
type Ports struct {
	First []int // per node: its first port; one more entry than nodes
	Node  []int // per port
	Peer  []int // per port: the port at the link's other end
	Link  []int // per port
}

// NewPorts numbers the ports of a graph whose links join existing nodes.
func NewPorts(g *Graph) *Ports {
	p := &Ports{
		First: make([]int, g.Nodes()+1), Node: make([]int, 2*len(g.Links)),
		Peer: make([]int, 2*len(g.Links)), Link: make([]int, 2*len(g.Links)),
	}
	for _, l := range g.Links {
		p.First[l.A+1]++
		p.First[l.B+1]++
	}
	for n := range g.Nodes() {
		p.First[n+1] += p.First[n]
	}
	next := append([]int(nil), p.First...)
	for i, l := range g.Links {
		a := next[l.A]
		next[l.A]++
		b := next[l.B]
		next[l.B]++
		p.Node[a], p.Peer[a], p.Link[a] = l.A, b, i
		p.Node[b], p.Peer[b], p.Link[b] = l.B, a, i
	}
	return p
}

// Split divides the nodes into n parts with about equal numbers of ports, and returns the part of each node. Hosts
// go with their switch. A tier is the switches at one distance from the nearest host. The switches of each tier
// are divided in the order of their numbers, so that a part of a Clos has whole pods and its share of the spines.
// Some parts are empty if there are few switches.
func Split(g *Graph, n int) []int {
	p := NewPorts(g)
	part := make([]int, g.Nodes())
	tier := tiers(g, p)
	weight := func(node int) int { // ports of a switch and of its hosts
		w := p.First[node+1] - p.First[node]
		for i := p.First[node]; i < p.First[node+1]; i++ {
			if g.IsHost(p.Node[p.Peer[i]]) {
				w++
			}
		}
		return w
	}
	for t := 1; ; t++ {
		all := 0
		for node := g.Hosts; node < g.Nodes(); node++ {
			if tier[node] == t {
				all += weight(node)
			}
		}
		if all == 0 {
			break
		}
		before := 0
		for node := g.Hosts; node < g.Nodes(); node++ {
			if tier[node] == t {
				w := weight(node)
				part[node] = (2*before + w) * n / (2 * all) // part that contains the middle of its ports
				before += w
			}
		}
	}
	for h := range g.Hosts {
		part[h] = part[p.Node[p.Peer[p.First[h]]]]
	}
	return part
}

// tiers returns the distance of each node from the nearest host, or 1 for switches without a path to a host.
func tiers(g *Graph, p *Ports) []int {
	tier := make([]int, g.Nodes())
	var queue []int
	for h := range g.Hosts {
		queue = append(queue, h)
	}
	for i := 0; i < len(queue); i++ {
		for j := p.First[queue[i]]; j < p.First[queue[i]+1]; j++ {
			if to := p.Node[p.Peer[j]]; !g.IsHost(to) && tier[to] == 0 {
				tier[to] = tier[queue[i]] + 1
				queue = append(queue, to)
			}
		}
	}
	for node := g.Hosts; node < g.Nodes(); node++ {
		tier[node] = max(tier[node], 1)
	}
	return tier
}
