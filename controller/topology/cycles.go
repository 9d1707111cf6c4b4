package topology

import (
	"context"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/cbd"
)

// Cycles is what of a fabric's routes may deadlock under PFC; see package cbd.
type Cycles struct {
	// Now is a cyclic buffer dependency of the routes as they are, such as
	// "leaf1:3→spine1:1→spine1:2→leaf2:3→…→leaf1:3": the end that sends of each link, the one that
	// receives, and so on around; empty when there is none. Then no failure was looked at.
	Now string
	// cbd.Survey's, with the links that fail by name.
	Examined, With, Left int
	Failed               []string
	Then                 string
}

// Cycles looks for cyclic buffer dependencies of the routes while links are down, and, where
// failures is more than 0, while up to so many others fail besides. lossless says which switches,
// by name, pause those who send to them. With the end of ctx no more failures are looked at.
func (g *Graph) Cycles(ctx context.Context, down map[string]bool, failures int, lossless func(sw string) bool) Cycles {
	f, ports := g.dependencies(lossless)
	state := make([]bool, len(g.links))
	for i, l := range g.links {
		state[i] = down[l.Name]
	}
	if now := f.Cycle(state); now != nil {
		return Cycles{Now: g.around(now, f, ports)}
	}
	s := f.Survey(ctx, state, failures)
	c := Cycles{Examined: s.Examined, With: s.With, Left: s.Left}
	if s.With > 0 {
		c.Then = g.around(s.Cycle, f, ports)
		for _, l := range s.Failed {
			c.Failed = append(c.Failed, g.links[l].Name)
		}
	}
	return c
}

// dependencies returns what package cbd looks at, and the port that each channel leaves by.
func (g *Graph) dependencies(lossless func(sw string) bool) (*cbd.Fabric, []*port) {
	f := &cbd.Fabric{Nodes: len(g.switches)}
	var ports []*port
	channel := make([][]int32, len(g.switches)) // by switch and port; −1 to a host
	pauses := make([]bool, len(g.switches))
	for i := range g.switches {
		pauses[i] = lossless(g.switches[i].name)
		for n := range g.switches[i].ports {
			p := &g.switches[i].ports[n]
			if p.peer < 0 {
				channel[i] = append(channel[i], -1)
				continue
			}
			channel[i] = append(channel[i], int32(len(ports)))
			ports = append(ports, p)
			f.Channels = append(f.Channels, cbd.Channel{From: i, To: p.peer, Link: p.link})
		}
	}
	leaf := make([]bool, len(g.switches))
	for _, h := range g.hosts {
		if !leaf[h.leaf] {
			leaf[h.leaf] = true
			f.Leaves = append(f.Leaves, h.leaf)
		}
	}
	f.Lossless = func(n int) bool { return pauses[n] }
	f.Hops = func(leaf int, down []bool) [][]int32 {
		hops := make([][]int32, len(g.switches))
		for i, list := range g.towards(leaf, State{}, usable{down, down}) {
			for _, n := range list {
				hops[i] = append(hops[i], channel[i][n])
			}
		}
		return hops
	}
	return f, ports
}

// around prints a cycle of channels.
func (g *Graph) around(cycle []int, f *cbd.Fabric, ports []*port) string {
	var b strings.Builder
	end := func(c int) string { return fmt.Sprintf("%s:%d", g.switches[f.Channels[c].From].name, ports[c].number) }
	for _, c := range cycle {
		fmt.Fprintf(&b, "%s→%s:%d→", end(c), ports[c].peerName, ports[c].peerPort)
	}
	return b.String() + end(cycle[0])
}
