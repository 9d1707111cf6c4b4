package topo

import (
	"context"
	"strings"

	"github.com/headgate/headgate/internal/cbd"
)

// Cycles looks for cyclic buffer dependencies between hosts' paths, every switch being lossless,
// and, where failures is more than 0, while up to so many more links between switches fail. A cycle is
// printed as the switches around it, such as "leaf1→spine0→leaf2→spine1→leaf1", a link as "leaf3–spine0".
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
