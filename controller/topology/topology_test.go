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
	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/units"
)

func leafSpine(t testing.TB) *Graph {
	t.Helper()
	text, err := os.ReadFile("../../examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	from, to := bytes.Index(text, []byte("\nqos:")), bytes.Index(text, []byte("\napplications:")) // other sections
	c, err := config.Parse("leaf-spine.yaml", append(text[:from:from], text[to:]...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(c)
}

// lookup returns a switch's longest matching route for an address, without next hops if there is
// none.
func lookup(routes *Routes, sw string, ip netip.Addr) (found Route) {
	bits := -1
	for _, r := range routes.ForSwitch(sw) {
		if len(r.NextHops) == 0 {
			continue
		}
		for i, p := range r.Prefixes {
			if p.Contains(ip) && p.Bits() > bits {
				if found, bits = r, p.Bits(); r.Group == 0 {
					found.NextHops = r.NextHops[i : i+1]
				}
			}
		}
	}
	return found
}

// ports lists a switch's ports towards an address.
func ports(routes *Routes, sw, ip string) []uint32 {
	var ports []uint32
	for _, h := range lookup(routes, sw, netip.MustParseAddr(ip)).NextHops {
		ports = append(ports, h.Port)
	}
	return ports
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
		want  []uint32 // of sw, to h3 (10.0.2.1) at leaf2
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
		{"a host's only link suspect", State{SuspectLinks: set("leaf2:1-h3")}, "leaf2", []uint32{1}},
		{"host link down", State{DownLinks: set("leaf2:1-h3")}, "leaf2", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ports(g.Routes(tt.state), tt.sw, "10.0.2.1"); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("ports of %s towards h3 = %v, want %v", tt.sw, got, tt.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	g := leafSpine(t)
	r := g.Routes(State{}).ForSwitch("leaf1") // four leaves
	if got, want := r[0].NextHops[0], (NextHop{1, MAC{2, 0, 0, 1, 0, 1}, MAC{6, 0, 10, 0, 1, 1}}); got != want {
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
		if rapid.Bool().Draw(t, "IPv6") {
			h.IPv6 = ipv6(i + 1)
		}
		c.Hosts = append(c.Hosts, h)
		for range rapid.SampledFrom([]int{1, 1, 2, 3, 4}).Draw(t, "links") {
			link(port(rapid.IntRange(0, n-1).Draw(t, "at")), config.Endpoint{Node: h.Name})
		}
	}
	return c
}

func ipv6(last int) netip.Addr {
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: byte(last)})
}

// drawState draws random link failures.
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

// TestRoutesLeadThere follows every next hop in random fabrics with random failures. No packet
// loops, whether its address exists or not. Every route ends at its host, and no route uses a link
// that is down.
func TestRoutesLeadThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawFabric(t)
		s := drawState(t, c)
		g := New(c)
		r := g.Routes(s)
		for _, n := range g.switches {
			if !reflect.DeepEqual(r.ForSwitch(n.name), New(c).Routes(s).ForSwitch(n.name)) {
				t.Fatal("routes differ between two runs")
			}
			for _, h := range g.Hosts() {
				for _, ip := range h.Addresses() {
					follow(t, g, s, r, n.name, ip, len(c.Switches))
				}
			}
			for last := range 8 { // hosts have some of 10.0.0.0/29 and of 2001:db8::/125
				follow(t, g, s, r, n.name, netip.AddrFrom4([4]byte{10, 0, 0, byte(last)}), len(c.Switches))
				follow(t, g, s, r, n.name, ipv6(last), len(c.Switches))
			}
		}
		everyoneReached(t, g, s, r)
		for _, from := range g.Hosts() {
			for _, to := range g.Hosts() {
				samePath(t, g, r, from, to)
			}
		}
	})
}

// samePath compares Path with the switches' longest matches.
func samePath(t *rapid.T, g *Graph, r *Routes, from, to Host) {
	seed := func(sw string) Hashing { return Hashing{Seed: ecmp.Seed(0, uint64(g.index[sw]))} }
	f := ecmp.Flow{Src: from.IPv4, Dst: to.IPv4, Protocol: 17, SrcPort: uint16(rapid.IntRange(1, 1<<16-1).Draw(t, "port")), DstPort: 50151}
	var want []config.Endpoint
	for sw, there := from.Switch, len(from.nics) == 1; there; {
		hops := lookup(r, sw, f.Dst).NextHops
		if len(hops) == 0 {
			want = nil
			break
		}
		i := 0
		if len(hops) > 1 {
			i = f.Choose(seed(sw).Seed, len(hops))
		}
		at := slices.IndexFunc(g.Ports(sw), func(p Port) bool { return p.Number == hops[i].Port })
		p := g.Ports(sw)[at]
		want = append(want, config.Endpoint{Node: sw, Port: p.Number})
		sw, there = p.Peer, p.PeerPort != 0
	}
	if got := r.Path(f, seed); !slices.Equal(got, want) {
		t.Fatalf("from %s to %s: %v, want %v", from.Name, to.Name, got, want)
	}
}

func follow(t *rapid.T, g *Graph, s State, r *Routes, sw string, to netip.Addr, left int) {
	if left < 0 {
		t.Fatalf("packets to %v loop at %s", to, sw)
	}
	for _, hop := range lookup(r, sw, to).NextHops {
		for _, p := range g.Ports(sw) {
			if p.Number != hop.Port {
				continue
			}
			if s.DownLinks[p.Link] {
				t.Fatalf("%s uses the link %s, which is down", sw, p.Link)
			}
			if p.PeerPort != 0 {
				follow(t, g, s, r, p.Peer, to, left-1)
				continue
			}
			for _, h := range g.Hosts() {
				if h.Name == p.Peer && !slices.Contains(h.Addresses(), to) {
					t.Fatalf("a packet to %v comes to %s", to, h.Name)
				}
			}
		}
	}
}

// everyoneReached checks that each host is reachable if a path of links that are up exists.
func everyoneReached(t *rapid.T, g *Graph, s State, r *Routes) {
	for _, h := range g.Hosts() {
		var up, at []int // the leaves with an up link to the host, and all leaves
		for _, nic := range h.nics {
			at = append(at, nic.leaf)
		}
		for _, even := range []bool{false, true} { // the suspect leaves, if there is no other
			for _, nic := range h.nics {
				if l := g.links[nic.link].Name; !s.DownLinks[l] && s.SuspectLinks[l] == even {
					up = append(up, nic.leaf)
				}
			}
			if len(up) > 0 {
				break
			}
		}
		ends := up
		if len(up) == 0 {
			ends = at // a route ends at a leaf without one
		}
		dist := g.distances(nil, ends, func(l int) bool { return !s.DownLinks[g.links[l].Name] })
		for i, n := range g.switches {
			want := dist[i] != unreachable
			if slices.Contains(at, i) && len(up) == 0 {
				want = false
			}
			for _, ip := range h.Addresses() {
				if has := len(lookup(r, n.name, ip).NextHops) > 0; has != want && (want || len(at) == 1) { // of several leaves, one without a link may be nearer
					t.Fatalf("%s has a route to %v: %v, distance %d", n.name, ip, has, dist[i])
				}
				if want && len(up) > 0 {
					arrives(t, g, r, n.name, ip)
				}
			}
		}
	}
}

// arrives checks that packets to a host's address reach it on every path.
func arrives(t *rapid.T, g *Graph, r *Routes, sw string, to netip.Addr) {
	hops := lookup(r, sw, to).NextHops
	if len(hops) == 0 {
		t.Fatalf("packets to %v end at %s", to, sw)
	}
	for _, hop := range hops {
		for _, p := range g.Ports(sw) {
			if p.Number == hop.Port && p.PeerPort != 0 {
				arrives(t, g, r, p.Peer, to)
			}
		}
	}
}

// TestRacks: a leaf has few prefixes, and they cover its own hosts and no other leaf's.
func TestRacks(t *testing.T) {
	c := &config.Config{Switches: []config.Switch{{Name: "a", DeviceID: 1}, {Name: "b", DeviceID: 2}}}
	for i, h := range []struct{ ip, ipv6, at string }{
		{"10.0.1.1", "2001:db8:1::1", "a"}, {"10.0.1.2", "2001:db8:1::2", "a"}, {"10.0.1.200", "", "a"}, {"10.0.2.1", "2001:db8:2::1", "b"}, {"10.0.2.3", "", "b"},
		{"192.168.0.1", "2001:db8:1:8000::", "a"}, {"192.168.0.2", "", "b"}, {"192.168.0.3", "", "a"},
	} {
		name := fmt.Sprint("h", i)
		host := config.Host{Name: name, IPv4: netip.MustParseAddr(h.ip)}
		if h.ipv6 != "" {
			host.IPv6 = netip.MustParseAddr(h.ipv6)
		}
		c.Hosts = append(c.Hosts, host)
		c.Links = append(c.Links, config.Link{Name: name, A: config.Endpoint{Node: h.at, Port: uint32(i + 1)}, B: config.Endpoint{Node: name}})
	}
	g := New(c)
	for i, want := range []string{
		"[10.0.1.0/24 192.168.0.1/32 192.168.0.3/32 2001:db8:1::/48]", "[10.0.2.0/30 192.168.0.2/32 2001:db8:2::1/128]",
	} {
		if got := fmt.Sprint(g.racks[i].Prefixes); got != want {
			t.Errorf("%s: %s, want %s", c.Switches[i].Name, got, want)
		}
	}
}

func BenchmarkRoutes(b *testing.B) {
	g := leafSpine(b)
	b.ReportAllocs()
	for b.Loop() {
		g.Routes(State{})
	}
}
