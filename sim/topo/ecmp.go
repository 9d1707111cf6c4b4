package topo

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/cbd"
	"github.com/headgate/headgate/internal/ecmp"
)

// ECMP makes the switches of a graph choose next hops by the hash of real switches.
type ECMP struct {
	Addresses []netip.Addr  // per node; switches have none
	Seeds     []uint32      // per node; hosts have none
	By        []ecmp.Fields // per node
	// RoCEPort and MaxQDPort are the UDP destination ports of flows: MaxQDPort for flows that carry maxQD,
	// RoCEPort for the others.
	RoCEPort, MaxQDPort uint16
}

// Add adds the next node.
func (e *ECMP) Add(address netip.Addr, seed uint32, by ecmp.Fields) {
	e.Addresses, e.Seeds, e.By = append(e.Addresses, address), append(e.Seeds, seed), append(e.By, by)
}

// Flow is the input of the choice of a path.
type Flow struct {
	// Hash replaces every field that is not given.
	Hash uint64
	// SrcPort and DstPort are UDP ports, used if the graph has an ECMP.
	SrcPort, DstPort uint16
}

// choose returns the index of the next hop that a flow between two hosts takes at a node.
func (e *ECMP) choose(node, src, dst int, f Flow, hops int) int {
	tuple := ecmp.Flow{
		Src: e.Addresses[src], Dst: e.Addresses[dst], Protocol: 17, SrcPort: f.SrcPort, DstPort: f.DstPort,
		By: e.By[node], QueuePair: uint32(f.Hash) & 0xffffff, FlowLabel: uint32(f.SrcPort), // as at hosts
	}
	return tuple.Choose(e.Seeds[node], hops)
}

// Router finds equal-cost shortest paths. It remembers the next hops towards each switch
// that hosts attach to, and forgets them when a link fails or comes back. It is owned by
// one simulator.
type Router struct {
	g     *Graph
	ports *Ports
	down  []bool // per link
	next  map[int]*hops
	queue []int
}

// hops holds, for one destination node, each node's ports on the shortest paths to it.
type hops struct {
	dist  []int32
	first []int32 // per node, one more entry than nodes: where its ports start in port
	port  []int32
}

// NewRouter returns a router over a checked graph.
func NewRouter(g *Graph, p *Ports) *Router {
	r := &Router{g: g, ports: p, down: make([]bool, len(g.Links)), next: map[int]*hops{}}
	for i, l := range g.Links {
		r.down[i] = l.Down
	}
	return r
}

// SetDown fails a link or repairs it.
func (r *Router) SetDown(link int, down bool) {
	if r.down[link] != down {
		r.down[link] = down
		clear(r.next)
	}
}

// Path appends to path the ports by which a packet from host src leaves each node on its way to host dst. At every
// node it takes one of the equal-cost next hops. The graph's ECMP chooses it. In a graph without ECMP, like most, the
// choice follows from f.Hash, which each node salts with its own number.
func (r *Router) Path(path []int32, src, dst int, f Flow) ([]int32, error) {
	if src == dst {
		return path, fmt.Errorf("a path from host %s to itself", r.g.Names[src])
	}
	// All hosts of a switch share its tree: route to the switch, then out of the host's port. A host with several
	// links has a tree of its own.
	last, target := -1, dst
	if first := r.ports.First[dst]; r.ports.First[dst+1] == first+1 {
		last = r.ports.Peer[first]
		target = r.ports.Node[last]
	}
	h := r.towards(target)
	node := src
	for node != target {
		lo, hi := h.first[node], h.first[node+1]
		if lo == hi {
			return path, fmt.Errorf("no path from host %s to host %s", r.g.Names[src], r.g.Names[dst])
		}
		pick := lo
		switch {
		case hi-lo == 1:
		case r.g.ECMP != nil:
			pick += int32(r.g.ECMP.choose(node, src, dst, f, int(hi-lo)))
		default:
			pick += int32(mix(f.Hash^uint64(node)*0x9E3779B97F4A7C15) % uint64(hi-lo))
		}
		port := h.port[pick]
		path = append(path, port)
		node = r.ports.Node[r.ports.Peer[port]]
	}
	if last < 0 {
		return path, nil
	}
	if r.down[r.ports.Link[last]] {
		return path, fmt.Errorf("no path from host %s to host %s", r.g.Names[src], r.g.Names[dst])
	}
	return append(path, int32(last)), nil
}

// mix is the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func (r *Router) towards(target int) *hops {
	if h := r.next[target]; h != nil {
		return h
	}
	n := r.g.Nodes()
	h := &hops{dist: make([]int32, n), first: make([]int32, n+1)}
	for i := range h.dist {
		h.dist[i] = -1
	}
	h.dist[target] = 0
	r.queue = append(r.queue[:0], target)
	for i := 0; i < len(r.queue); i++ {
		at := r.queue[i]
		if at != target && r.g.IsHost(at) {
			continue // hosts do not forward
		}
		for p := r.ports.First[at]; p < r.ports.First[at+1]; p++ {
			to := r.ports.Node[r.ports.Peer[p]]
			if h.dist[to] < 0 && !r.down[r.ports.Link[p]] {
				h.dist[to] = h.dist[at] + 1
				r.queue = append(r.queue, to)
			}
		}
	}
	for node := range n {
		h.first[node] = int32(len(h.port))
		if h.dist[node] <= 0 {
			continue
		}
		for p := r.ports.First[node]; p < r.ports.First[node+1]; p++ {
			to := r.ports.Node[r.ports.Peer[p]]
			if h.dist[to] == h.dist[node]-1 && !r.down[r.ports.Link[p]] && (to == target || !r.g.IsHost(to)) {
				h.port = append(h.port, int32(p))
			}
		}
		if r.g.ECMP != nil {
			slices.SortStableFunc(h.port[h.first[node]:], func(a, b int32) int { return cmp.Compare(r.g.Number(r.ports, int(a)), r.g.Number(r.ports, int(b))) })
		}
	}
	h.first[n] = int32(len(h.port))
	r.next[target] = h
	return h
}

// Number returns the number of a port at its node.
func (g *Graph) Number(p *Ports, port int) uint32 {
	l := &g.Links[p.Link[port]]
	if l.A == p.Node[port] {
		return l.PortA
	}
	return l.PortB
}

// Cycles looks for cyclic buffer dependencies between hosts' paths, as if every switch were lossless. If failures
// is more than 0, it also looks with up to that many failed links between switches. A cycle is printed as its
// switches, such as "leaf1→spine0→leaf2→spine1→leaf1", a link as "leaf3–spine0".
func (g *Graph) Cycles(ctx context.Context, failures int) cbd.Cycles {
	p := NewPorts(g)
	ports := make([][]cbd.Port, g.Nodes())
	for i, from := range p.Node {
		to := p.Node[p.Peer[i]]
		if g.IsHost(from) {
			continue
		}
		if g.IsHost(to) {
			to = -1
		}
		ports[from] = append(ports[from], cbd.Port{Peer: to, Link: p.Link[i]})
	}
	f := cbd.New(ports, func(int) bool { return true }, func(leaf int, down []bool) [][]int {
		h := (&Router{g: g, ports: p, down: down, next: map[int]*hops{}}).towards(leaf)
		list := make([][]int, g.Nodes())
		for n := g.Hosts; n < g.Nodes(); n++ {
			for _, port := range h.port[h.first[n]:h.first[n+1]] {
				list[n] = append(list[n], int(port)-p.First[n])
			}
		}
		return list
	})
	around := func(cycle []cbd.Channel) string {
		var names []string
		for _, c := range append(cycle, cycle[0]) {
			names = append(names, g.Names[c.From])
		}
		return strings.Join(names, "→")
	}
	return f.Survey(ctx, NewRouter(g, p).down, failures, around, func(l int) string { return g.Names[g.Links[l].A] + "–" + g.Names[g.Links[l].B] })
}
