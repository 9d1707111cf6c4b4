package topo

import (
	"context"
	"strings"

	"github.com/headgate/headgate/internal/cbd"
)

// Cycles is what of a graph's equal-cost shortest paths may deadlock under PFC; see package cbd.
type Cycles struct {
	// Now is a cyclic buffer dependency, the switches around it such as
	// "leaf1→spine0→leaf2→spine1→leaf1"; empty when there is none. Then no failure was looked at.
	Now string
	// cbd.Survey's, with the links that fail as "leaf3–spine0".
	Examined, With, Left int
	Failed               []string
	Then                 string
}

// Cycles looks for cyclic buffer dependencies between hosts' paths, every switch being lossless,
// and, where failures is more than 0, while up to so many more links between switches fail.
func (g *Graph) Cycles(ctx context.Context, failures int) Cycles {
	p := NewPorts(g)
	f := &cbd.Fabric{Nodes: g.Nodes()}
	channel := make([]int32, len(p.Node)) // by port; −1 at a host
	leaf := make([]bool, g.Nodes())
	for i, from := range p.Node {
		to := p.Node[p.Peer[i]]
		channel[i] = -1
		switch {
		case !g.IsHost(from) && !g.IsHost(to):
			channel[i] = int32(len(f.Channels))
			f.Channels = append(f.Channels, cbd.Channel{From: from, To: to, Link: p.Link[i]})
		case g.IsHost(from) && !leaf[to]:
			leaf[to] = true
			f.Leaves = append(f.Leaves, to)
		}
	}
	f.Lossless = func(int) bool { return true }
	f.Hops = func(leaf int, down []bool) [][]int32 {
		h := (&Router{g: g, ports: p, down: down, next: map[int]*hops{}}).towards(leaf)
		list := make([][]int32, g.Nodes())
		for n := g.Hosts; n < g.Nodes(); n++ {
			for _, port := range h.port[h.first[n]:h.first[n+1]] {
				list[n] = append(list[n], channel[port])
			}
		}
		return list
	}
	down := make([]bool, len(g.Links))
	for i, l := range g.Links {
		down[i] = l.Down
	}
	around := func(cycle []int) string {
		var names []string
		for _, c := range append(cycle, cycle[0]) {
			names = append(names, g.Names[f.Channels[c].From])
		}
		return strings.Join(names, "→")
	}
	if now := f.Cycle(down); now != nil {
		return Cycles{Now: around(now)}
	}
	s := f.Survey(ctx, down, failures)
	c := Cycles{Examined: s.Examined, With: s.With, Left: s.Left}
	if s.With > 0 {
		c.Then = around(s.Cycle)
		for _, l := range s.Failed {
			c.Failed = append(c.Failed, g.Names[g.Links[l].A]+"–"+g.Names[g.Links[l].B])
		}
	}
	return c
}
