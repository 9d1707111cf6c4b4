package experiment

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim/hpcc"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// maxHosts bounds a fabric.
const maxHosts = 1 << 18

// decodeTopology returns nil after reporting faults.
func decodeTopology(m *yamlnode.Map) (g *topo.Graph) {
	m.Need("kind")
	var err error
	const most = maxHosts
	switch m.OneOf("kind", "", "star", "dumbbell", "leaf-spine", "fat-tree", "clos", "custom", "file") {
	case "star":
		m.Need("hosts")
		g, err = topo.Star(m.Int("hosts", 2, 2, most), line(m, "host", nil))
	case "dumbbell":
		m.Need("left", "right")
		host := line(m, "host", nil)
		g, err = topo.Dumbbell(m.Int("left", 1, 1, most), m.Int("right", 1, 1, most), host, line(m, "trunk", &host))
	case "leaf-spine":
		m.Need("leaves", "spines", "hosts_per_leaf")
		host := line(m, "host", nil)
		g, err = topo.LeafSpine(m.Int("leaves", 1, 1, 4096), m.Int("spines", 1, 1, 4096), m.Int("hosts_per_leaf", 2, 1, 4096), host, line(m, "spine", &host))
	case "fat-tree":
		m.Need("k")
		host := line(m, "host", nil)
		edge := line(m, "edge", &host)
		g, err = topo.FatTree(m.Int("k", 4, 2, 64), host, edge, line(m, "core", &edge))
	case "clos":
		m.Need("pods", "tors", "leaves", "hosts_per_tor")
		host := line(m, "host", nil)
		leaf := line(m, "leaf", &host)
		g, err = topo.Clos(topo.ClosSpec{
			Pods: m.Int("pods", 1, 1, 1024), ToRs: m.Int("tors", 2, 1, 1024), Leaves: m.Int("leaves", 1, 1, 1024),
			Spines: m.Int("spines", 0, 0, 1024), PerToR: m.Int("hosts_per_tor", 1, 1, 1024),
			Host: host, Leaf: leaf, Spine: line(m, "spine", &leaf),
		})
	case "custom":
		if g = custom(m); g == nil {
			fail(m, nil)
			m.AllowUnknown()
			return nil
		}
		err = g.Check()
	case "file":
		m.Need("file")
		name := m.Text("file", "")
		var f *os.File
		if f, err = os.Open(beside(m, name)); err == nil {
			g, err = hpcc.Topology(f)
			f.Close()
		}
		if err != nil {
			m.Fault("file", "%s: %v", name, err)
			fail(m, nil)
			return nil
		}
	default:
		m.AllowUnknown()
		return nil
	}
	if err == nil {
		fail(m, g)
		err = g.Check()
	}
	if err != nil {
		m.Fault("", "%v", err)
		fail(m, nil)
		return nil
	}
	return g
}

// line reads {rate: 100Gbps, delay: 1us, jitter: 0us, spread: 0us}. If the key is missing it returns def.
func line(m *yamlnode.Map, key string, def *topo.Line) topo.Line {
	l := topo.Line{Rate: units.Gbps}
	if def != nil {
		l = *def
	}
	if def == nil {
		m.Need(key)
	}
	m.Sub(key, func(m *yamlnode.Map) {
		if def == nil {
			m.Need("rate", "delay")
		}
		l.Rate = m.Rate("rate", l.Rate, 1, maxRate)
		l.Delay = m.Time("delay", l.Delay, 0, units.Second)
		l.Jitter = m.Time("jitter", l.Jitter, 0, topo.MaxJitter)
		l.Spread = m.Time("spread", l.Spread, 0, units.Second)
	})
	return l
}

// fail reads "failed: [{a: leaf0, b: spine1}]". If the fabric is wrong (g is nil) it only reads the keys, so that
// they do not count as unknown.
func fail(m *yamlnode.Map, g *topo.Graph) {
	m.Each("failed", func(f *yamlnode.Map) {
		f.Need("a", "b")
		if g == nil {
			f.Text("a", "")
			f.Text("b", "")
			return
		}
		a, okA := g.Find(f.Text("a", ""))
		b, okB := g.Find(f.Text("b", ""))
		l, ok := g.LinkBetween(a, b)
		if !okA || !okB || !ok {
			f.Fault("", "no link joins %q and %q", f.Text("a", ""), f.Text("b", ""))
			return
		}
		g.Links[l].Down = true
	})
}

// custom reads hosts, switches and links one by one.
func custom(m *yamlnode.Map) *topo.Graph {
	m.Need("hosts", "switches", "links")
	g := &topo.Graph{}
	hosts, switches := m.Texts("hosts"), m.Texts("switches")
	g.Names = append(append(g.Names, hosts...), switches...)
	g.Hosts, g.Switches = len(hosts), len(switches)
	at := map[string]int{}
	for i, n := range g.Names {
		if _, twice := at[n]; twice {
			m.Fault("hosts", "two nodes are called %q", n)
			return nil
		}
		at[n] = i
	}
	ok := true
	m.Each("links", func(l *yamlnode.Map) {
		l.Need("a", "b", "rate", "delay")
		a, okA := at[l.Text("a", "")]
		b, okB := at[l.Text("b", "")]
		if !okA || !okB {
			l.Fault("", "joins %q and %q, want two of the hosts and switches", l.Text("a", ""), l.Text("b", ""))
			ok = false
		}
		g.Links = append(g.Links, topo.Link{A: a, B: b, Rate: l.Rate("rate", units.Gbps, 1, maxRate), Delay: l.Time("delay", 0, 0, units.Second), Jitter: l.Time("jitter", 0, 0, topo.MaxJitter), Spread: l.Time("spread", 0, 0, units.Second)})
	})
	if !ok {
		return nil
	}
	return g
}

// hostSet reads a set of hosts: "all", or names, numbers and ranges separated by commas,
// such as "h3", "0-15, 20".
func hostSet(g *topo.Graph, text string) ([]int, error) {
	var hosts []int
	if text == "all" {
		for h := range g.Hosts {
			hosts = append(hosts, h)
		}
		return hosts, nil
	}
	seen := make([]bool, g.Hosts)
	for _, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		low, high, err := hostRange(g, item)
		if err != nil {
			return nil, err
		}
		for h := low; h <= high; h++ {
			if seen[h] {
				return nil, fmt.Errorf("names host %s twice", g.Names[h])
			}
			seen[h] = true
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

func hostRange(g *topo.Graph, item string) (low, high int, err error) {
	if n, ok := g.Find(item); ok && g.IsHost(n) {
		return n, n, nil
	}
	a, b, isRange := strings.Cut(item, "-")
	low, errA := strconv.Atoi(strings.TrimSpace(a))
	high = low
	var errB error
	if isRange {
		high, errB = strconv.Atoi(strings.TrimSpace(b))
	}
	if errA != nil || errB != nil || low < 0 || high < low || high >= g.Hosts {
		return 0, 0, fmt.Errorf("%q is no host: want \"all\" or names, numbers and ranges of hosts 0 to %d, such as \"0-3, 7\"", item, g.Hosts-1)
	}
	return low, high, nil
}
