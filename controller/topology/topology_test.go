package topology

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

func leafSpine(t testing.TB) *Graph {
	t.Helper()
	text, err := os.ReadFile("../../examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	from, to := bytes.Index(text, []byte("\nqos:")), bytes.Index(text, []byte("\napplications:")) // sections of others
	c, err := config.Parse("leaf-spine.yaml", append(text[:from:from], text[to:]...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(c)
}

// ports lists, for one switch, the ports towards a host.
func ports(routes *Routes, sw, ip string) []uint32 {
	for _, r := range routes.Of(sw) {
		if len(r.NextHops) > 0 && slices.Contains(r.Prefixes, netip.MustParsePrefix(ip+"/32")) {
			var ports []uint32
			for _, h := range r.NextHops {
				ports = append(ports, h.Port)
			}
			return ports
		}
	}
	return nil
}

func TestRoutes(t *testing.T) {
	g := leafSpine(t)
	set := func(names ...string) map[string]bool {
		m := map[string]bool{}
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	tests := []struct {
		name  string
		state State
		sw    string
		want  []uint32 // of sw towards h3 (10.0.2.1) on leaf2
	}{
		{"both spines", State{}, "leaf1", []uint32{3, 4}},
		{"own host", State{}, "leaf2", []uint32{1}},
		{"spine down", State{}, "spine1", []uint32{2}},
		{"link down", State{DownLinks: set("leaf1:3-spine1:1")}, "leaf1", []uint32{4}},
		{"far link down", State{DownLinks: set("leaf2:3-spine1:2")}, "leaf1", []uint32{4}},
		{"detour of a spine whose link is down", State{DownLinks: set("leaf2:3-spine1:2")}, "spine1", []uint32{1, 3, 4}},
		{"suspect link", State{SuspectLinks: set("leaf1:4-spine2:1")}, "leaf1", []uint32{3}},
		{"both suspect is better than none", State{SuspectLinks: set("leaf1:3-spine1:1", "leaf1:4-spine2:1")}, "leaf1", []uint32{3, 4}},
		{"held link", State{HeldLinks: set("leaf1:4-spine2:1")}, "leaf1", []uint32{3}},
		{"held is better than suspect", State{SuspectLinks: set("leaf1:3-spine1:1"), HeldLinks: set("leaf1:4-spine2:1")}, "leaf1", []uint32{4}},
		{"both held is better than none", State{HeldLinks: set("leaf1:3-spine1:1", "leaf1:4-spine2:1")}, "leaf1", []uint32{3, 4}},
		{"a way by a held link is better than a suspect one", State{SuspectLinks: set("leaf2:3-spine1:2"), HeldLinks: set("leaf2:4-spine2:2")}, "spine1", []uint32{1, 3, 4}},
		{"held and down", State{HeldLinks: set("leaf1:3-spine1:1"), DownLinks: set("leaf1:3-spine1:1", "leaf1:4-spine2:1")}, "leaf1", nil},
		{"both down", State{DownLinks: set("leaf1:3-spine1:1", "leaf1:4-spine2:1")}, "leaf1", nil},
		{"suspect spine", State{SuspectSwitches: set("spine2")}, "leaf1", []uint32{3}},
		{"suspect leaf is the destination", State{SuspectSwitches: set("leaf2")}, "leaf1", []uint32{3, 4}},
		{"suspect leaf and suspect spine", State{SuspectSwitches: set("leaf2", "spine1")}, "leaf1", []uint32{4}},
		{"suspect spine still forwards", State{SuspectSwitches: set("spine2")}, "spine2", []uint32{2}},
		{"host link down", State{DownLinks: set("leaf2:1-h3")}, "leaf2", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ports(g.Routes(tt.state, nil), tt.sw, "10.0.2.1"); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("ports of %s towards h3 = %v, want %v", tt.sw, got, tt.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	g := leafSpine(t)
	r := g.Routes(State{}, nil).Of("leaf1") // four leaves, then h1 and h2
	if got, want := r[4].NextHops[0], (NextHop{1, MAC{2, 0, 0, 1, 0, 1}, MAC{6, 0, 10, 0, 1, 1}}); got != want {
		t.Errorf("next hop to h1 = %v, want %v", got, want)
	}
	if got, want := r[1].NextHops[1], (NextHop{4, MAC{2, 0, 0, 1, 0, 4}, MAC{2, 0, 0, 6, 0, 1}}); got != want {
		t.Errorf("second next hop to h3 = %v, want %v", got, want)
	}
	if p := g.Ports("spine1"); len(p) != 4 || p[1].Peer != "leaf2" || p[1].PeerPort != 3 || p[1].Rate != 50*units.Mbps {
		t.Errorf("ports of spine1 = %+v", p)
	}
}

func TestBetween(t *testing.T) {
	g := leafSpine(t)
	for _, tt := range []struct{ a, b, want string }{
		{"leaf1", "spine1", "[leaf1:3-spine1:1] <nil>"},
		{"spine1", "leaf1:3", "[leaf1:3-spine1:1] <nil>"},
		{"h1", "leaf1:1", "[leaf1:1-h1] <nil>"},
		{"leaf1:4", "spine1", `[] no link joins "leaf1:4" and "spine1": "leaf1:4" has links to spine2`},
		{"spine1", "h1", `[] no link joins "spine1" and "h1": "spine1" has links to leaf1, leaf2, leaf3, leaf4`},
		{"x", "leaf1", `[] no link joins "x" and "leaf1": the fabric has no link at "x"`},
	} {
		if names, err := g.Between(tt.a, tt.b); fmt.Sprint(names, " ", err) != tt.want || (err != nil) != errors.Is(err, ErrNoLink) {
			t.Errorf("%s, %s: %v %v, want %s", tt.a, tt.b, names, err, tt.want)
		}
	}
}

// drawFabric makes a random fabric.
func drawFabric(t *rapid.T) *config.Config {
	c := &config.Config{Scale: 1}
	n := rapid.IntRange(1, 7).Draw(t, "switches")
	next := make([]uint32, n)
	port := func(i int) config.Endpoint {
		next[i]++
		return config.Endpoint{Node: c.Switches[i].Name, Port: next[i]}
	}
	link := func(a, b config.Endpoint) {
		c.Links = append(c.Links, config.Link{Name: a.String() + "-" + b.String(), A: a, B: b})
	}
	for i := range n {
		c.Switches = append(c.Switches, config.Switch{Name: fmt.Sprintf("s%d", i), DeviceID: uint64(i)})
		if i > 0 {
			link(port(rapid.IntRange(0, i-1).Draw(t, "tree")), port(i))
		}
	}
	for range rapid.IntRange(0, 6).Draw(t, "extra links") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
		if a != b {
			link(port(a), port(b))
		}
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "hosts") {
		h := config.Host{Name: fmt.Sprintf("h%d", i), IPv4: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}
		c.Hosts = append(c.Hosts, h)
		link(port(rapid.IntRange(0, n-1).Draw(t, "at")), config.Endpoint{Node: h.Name})
	}
	return c
}

// drawState makes random faults.
func drawState(t *rapid.T, c *config.Config) State {
	s := State{DownLinks: map[string]bool{}, SuspectLinks: map[string]bool{}, HeldLinks: map[string]bool{}, SuspectSwitches: map[string]bool{}}
	for _, l := range c.Links {
		s.DownLinks[l.Name] = rapid.IntRange(0, 5).Draw(t, "down") == 0
		s.SuspectLinks[l.Name] = rapid.IntRange(0, 4).Draw(t, "suspect") == 0
		s.HeldLinks[l.Name] = rapid.IntRange(0, 4).Draw(t, "held") == 0
	}
	for _, sw := range c.Switches {
		s.SuspectSwitches[sw.Name] = rapid.IntRange(0, 4).Draw(t, "suspect") == 0
	}
	return s
}

// tables returns the next hops of all switches by prefix.
func tables(g *Graph, r *Routes) map[string]map[netip.Prefix]Route {
	all := map[string]map[netip.Prefix]Route{}
	for _, n := range g.switches {
		all[n.name] = map[netip.Prefix]Route{}
		for _, route := range r.Of(n.name) {
			if len(route.NextHops) == 0 {
				continue
			}
			for _, p := range route.Prefixes {
				all[n.name][p] = route
			}
		}
	}
	return all
}

// TestRoutesLeadThere follows every next hop in random fabrics with random faults: no
// packet loops, every route ends at its host, and no route uses a link that is down.
func TestRoutesLeadThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawFabric(t)
		s := drawState(t, c)
		g := New(c)
		table := tables(g, g.Routes(s, nil))
		if !reflect.DeepEqual(table, tables(g, New(c).Routes(s, nil))) {
			t.Fatal("routes differ between two runs")
		}
		for sw, list := range table {
			for prefix := range list {
				follow(t, g, s, table, sw, prefix, len(c.Switches))
			}
		}
		everyoneReached(t, g, s, table)
	})
}

// TestRoutesFromLast: whatever happened before, the routes in a state are the same, and a switch for
// which nothing changed keeps its own.
func TestRoutesFromLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawFabric(t)
		g := New(c)
		var last *Routes
		s := State{DownLinks: map[string]bool{}, SuspectLinks: map[string]bool{}, HeldLinks: map[string]bool{}, SuspectSwitches: map[string]bool{}}
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			if rapid.IntRange(0, 3).Draw(t, "all change") == 0 {
				s = drawState(t, c)
			} else {
				l := c.Links[rapid.IntRange(0, len(c.Links)-1).Draw(t, "link")].Name
				m := rapid.SampledFrom([]map[string]bool{s.DownLinks, s.SuspectLinks, s.HeldLinks}).Draw(t, "kind")
				m[l] = !m[l]
			}
			next := g.Routes(s, last)
			now := tables(g, next)
			if fresh := tables(g, New(c).Routes(s, nil)); !reflect.DeepEqual(now, fresh) {
				t.Fatalf("in %v from the last:\n%v\nfrom nothing:\n%v", s, now, fresh)
			}
			for _, n := range g.switches {
				if last == nil {
					continue
				}
				kept := &last.Of(n.name)[0] == &next.Of(n.name)[0]
				if kept != slices.EqualFunc(last.Of(n.name), next.Of(n.name), Route.Same) {
					t.Fatalf("%s keeps its routes: %v; before %v, now %v", n.name, kept, last.Of(n.name), next.Of(n.name))
				}
			}
			last = next
		}
	})
}

func follow(t *rapid.T, g *Graph, s State, table map[string]map[netip.Prefix]Route, sw string, to netip.Prefix, left int) {
	if left < 0 {
		t.Fatalf("packets to %v loop at %s", to, sw)
	}
	r, ok := table[sw][to]
	if !ok || len(r.NextHops) == 0 {
		t.Fatalf("packets to %v end at %s", to, sw)
	}
	for _, hop := range r.NextHops {
		for _, p := range g.Ports(sw) {
			if p.Number != hop.Port {
				continue
			}
			if s.DownLinks[p.Link] {
				t.Fatalf("%s uses the link %s, which is down", sw, p.Link)
			}
			if p.PeerPort != 0 {
				follow(t, g, s, table, p.Peer, to, left-1)
			}
		}
	}
}

// everyoneReached checks that a route exists wherever links that are up allow one.
func everyoneReached(t *rapid.T, g *Graph, s State, table map[string]map[netip.Prefix]Route) {
	for _, h := range g.Hosts() {
		if s.DownLinks[g.links[h.link].Name] {
			continue
		}
		dist := g.distances(g.index[h.Switch], func(l int) bool { return !s.DownLinks[g.links[l].Name] })
		for i, n := range g.switches {
			_, has := table[n.name][netip.PrefixFrom(h.IPv4, 32)]
			if has != (dist[i] != unreachable) {
				t.Fatalf("%s has a route to %s: %v, distance %d", n.name, h.Name, has, dist[i])
			}
		}
	}
}

func BenchmarkRoutes(b *testing.B) {
	g := leafSpine(b)
	b.ReportAllocs()
	for b.Loop() {
		g.Routes(State{}, nil)
	}
}
