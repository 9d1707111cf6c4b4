package topo

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

var line = Line{Rate: 100 * units.Gbps, Delay: units.Microsecond}

func shapes(t *testing.T) map[string]*Graph {
	t.Helper()
	out := map[string]*Graph{}
	add := func(name string, g *Graph, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = g
	}
	g, err := Star(5, line)
	add("star", g, err)
	g, err = Dumbbell(3, 2, line, line)
	add("dumbbell", g, err)
	g, err = LeafSpine(4, 3, 2, line, line)
	add("leaf-spine", g, err)
	g, err = FatTree(4, line, line, line)
	add("fat-tree", g, err)
	g, err = Clos(ClosSpec{Pods: 3, ToRs: 2, Leaves: 2, Spines: 2, PerToR: 2, Host: line, Leaf: line, Spine: line})
	add("clos", g, err)
	return out
}

func TestSizes(t *testing.T) {
	s := shapes(t)
	for _, tt := range []struct {
		name                   string
		hosts, switches, links int
	}{
		{"star", 5, 1, 5}, {"dumbbell", 5, 2, 6}, {"leaf-spine", 8, 7, 20}, {"fat-tree", 16, 20, 48}, {"clos", 12, 16, 12 + 12 + 12},
	} {
		g := s[tt.name]
		if g.Hosts != tt.hosts || g.Switches != tt.switches || len(g.Links) != tt.links {
			t.Errorf("%s: %d hosts, %d switches, %d links, want %d, %d, %d", tt.name, g.Hosts, g.Switches, len(g.Links), tt.hosts, tt.switches, tt.links)
		}
	}
}

// TestPaths: a path leads from source to destination over working links and is a shortest one, and equal-cost
// paths are used about equally.
func TestPaths(t *testing.T) {
	for name, g := range shapes(t) {
		p := NewPorts(g)
		r := NewRouter(g, p)
		rapid.Check(t, func(t *rapid.T) {
			src, dst := rapid.IntRange(0, g.Hosts-1).Draw(t, "src"), rapid.IntRange(0, g.Hosts-1).Draw(t, "dst")
			if src == dst {
				return
			}
			a, err := r.Path(nil, src, dst, Flow{Hash: rapid.Uint64().Draw(t, "hash")})
			if err != nil {
				t.Fatal(name, err)
			}
			at := src
			for _, port := range a {
				if p.Node[port] != at {
					t.Fatalf("%s: port %d is not at node %d", name, port, at)
				}
				at = p.Node[p.Peer[port]]
			}
			b, err := r.Path(nil, dst, src, Flow{Hash: rapid.Uint64().Draw(t, "hash back")})
			if err != nil || at != dst || len(b) != len(a) {
				t.Fatalf("%s: ends at %d, want %d; %d hops there, %d back, %v", name, at, dst, len(a), len(b), err)
			}
		})
	}
	g := shapes(t)["fat-tree"]
	p := NewPorts(g)
	r := NewRouter(g, p)
	count := map[int32]int{}
	for h := range uint64(4000) {
		path, err := r.Path(nil, 0, 15, Flow{Hash: h * 0x9E3779B97F4A7C15})
		if err != nil {
			t.Fatal(err)
		}
		count[path[2]]++ // the aggregation switch's port to a core
	}
	if len(count) != 4 {
		t.Fatalf("%d paths are used, want 4", len(count))
	}
	for port, n := range count {
		if n < 850 || n > 1150 {
			t.Errorf("port %d carries %d of 4000 flows, want about 1000", port, n)
		}
	}
}

func TestFailedLinks(t *testing.T) {
	g := shapes(t)["leaf-spine"]
	p := NewPorts(g)
	r := NewRouter(g, p)
	l, ok := g.LinkBetween(8, 12) // leaf0, spine0
	if !ok {
		t.Fatal("no such link")
	}
	r.SetDown(l, true)
	for h := range uint64(200) {
		path, err := r.Path(nil, 0, 7, Flow{Hash: h * 977})
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range path {
			if p.Link[port] == l {
				t.Fatal("a path crosses the failed link")
			}
		}
	}
	for s := 12; s < 15; s++ {
		l, _ := g.LinkBetween(8, s)
		r.SetDown(l, true)
	}
	if _, err := r.Path(nil, 0, 7, Flow{Hash: 1}); err == nil {
		t.Error("a leaf without uplinks has a path")
	}
}

func TestCheckRefuses(t *testing.T) {
	good := func() *Graph {
		g, err := LeafSpine(2, 1, 1, line, line)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for want, breakIt := range map[string]func(*Graph){
		"rate":                func(g *Graph) { g.Links[0].Rate = 0 },
		"delay":               func(g *Graph) { g.Links[1].Delay = -1 },
		"no path":             func(g *Graph) { g.Links[2].Down = true },
		"host h0 has no link": func(g *Graph) { g.Links = g.Links[1:] },
		"joins nodes":         func(g *Graph) { g.Links[0].B = 99 },
		"at least 2":          func(g *Graph) { g.Hosts = 1 },
	} {
		g := good()
		breakIt(g)
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := FatTree(5, line, line, line); err == nil {
		t.Error("an odd fat-tree was built")
	}
	if _, err := LeafSpine(4096, 4096, 1, line, line); err == nil || !strings.Contains(err.Error(), "links") {
		t.Errorf("16 million links: error %v", err)
	}
	if _, err := Clos(ClosSpec{Pods: 1, ToRs: 1024, Leaves: 1024, PerToR: 1, Host: line, Leaf: line}); err == nil || !strings.Contains(err.Error(), "links") {
		t.Errorf("a million links: error %v", err)
	}
}
