package topology

import (
	"context"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/cbd"
)

// Cycles looks for cyclic buffer dependencies of the routes while links are down, and, where
// failures is more than 0, while up to so many others fail besides. lossless says which switches,
// by name, pause those who send to them. With the end of ctx no more failures are looked at. A cycle
// is printed as "leaf1:3→spine1:1→spine1:2→leaf2:3→…→leaf1:3": the end that sends of each link, the
// one that receives, and so on around.
func (g *Graph) Cycles(ctx context.Context, down map[string]bool, failures int, lossless func(sw string) bool) cbd.Cycles {
	ports := make([][]cbd.Port, len(g.switches))
	for i, s := range g.switches {
		for _, p := range s.ports {
			ports[i] = append(ports[i], cbd.Port{Peer: p.peer, Link: p.link})
		}
	}
	f := cbd.New(ports, func(n int) bool { return lossless(g.switches[n].name) }, func(leaf int, down []bool) [][]int {
		up := func(link int) bool { return !down[link] }
		dist, hops := g.distances(nil, leaf, up), make([][]int, len(g.switches))
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

// around prints a cycle.
func (g *Graph) around(cycle []cbd.Channel) string {
	var b strings.Builder
	port := func(c cbd.Channel) *port { return &g.switches[c.From].ports[c.Port] }
	end := func(c cbd.Channel) string { return fmt.Sprintf("%s:%d", g.switches[c.From].name, port(c).number) }
	for _, c := range cycle {
		fmt.Fprintf(&b, "%s→%s:%d→", end(c), port(c).peerName, port(c).peerPort)
	}
	return b.String() + end(cycle[0])
}
