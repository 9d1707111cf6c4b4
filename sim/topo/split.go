package topo

// Split parts the nodes among n parts of about equal numbers of ports: hosts go with their
// switch, and the switches of a tier, those equally far from the nearest host, are dealt out in
// the order of their numbers, so that a part of a Clos has whole pods and its share of the spines.
// It returns the part of each node; some parts are empty where there are few switches.
func Split(g *Graph, n int) []int {
	p := NewPorts(g)
	part := make([]int, g.Nodes())
	tier := tiers(g, p)
	weight := func(node int) int { // ports, with those of the hosts there
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
				part[node] = (2*before + w) * n / (2 * all) // by the middle of its ports
				before += w
			}
		}
	}
	for h := range g.Hosts {
		part[h] = part[p.Node[p.Peer[p.First[h]]]]
	}
	return part
}

// tiers returns the distance of each node from the nearest host, 1 for switches that no path
// joins to one.
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
