package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
)

// shapes is three leaves below two spines. Two of the leaves have two parallel links to spine1. h1 is only at
// leaf1; h2 has a NIC at leaf1 and one at leaf2; h3 has a LAG at leaf1; h4 has one over leaf1 and leaf2.
const shapes = `
name: shapes
switches:
  - {name: leaf1, device_id: 1, address: "h:1"}
  - {name: leaf2, device_id: 2, address: "h:2"}
  - {name: leaf3, device_id: 3, address: "h:3"}
  - {name: spine1, device_id: 4, address: "h:4"}
  - {name: spine2, device_id: 5, address: "h:5"}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.2.1, ipv6: "2001:db8::1"}
  - {name: h3, ipv4: 10.0.1.2, bond: lag}
  - {name: h4, ipv4: 10.0.2.2, bond: mlag}
  - {name: h5, ipv4: 10.0.3.1}
links:
  - {a: "leaf1:1", b: h1, rate: 1Gbps}
  - {a: "leaf1:2", b: h2, rate: 1Gbps}
  - {a: "leaf2:2", b: h2, rate: 1Gbps}
  - {a: "leaf1:4", b: h3, rate: 1Gbps}
  - {a: "leaf1:3", b: h3, rate: 1Gbps}
  - {a: "leaf1:5", b: h4, rate: 1Gbps}
  - {a: "leaf1:6", b: h4, rate: 1Gbps}
  - {a: "leaf2:5", b: h4, rate: 1Gbps}
  - {a: "leaf3:1", b: h5, rate: 1Gbps}
  - {a: "leaf1:11", b: "spine1:1", rate: 1Gbps}
  - {a: "leaf1:12", b: "spine1:2", rate: 1Gbps}
  - {a: "leaf1:13", b: "spine2:1", rate: 1Gbps}
  - {a: "leaf2:11", b: "spine1:3", rate: 1Gbps}
  - {a: "leaf2:12", b: "spine1:4", rate: 1Gbps}
  - {a: "leaf2:13", b: "spine2:2", rate: 1Gbps}
  - {a: "leaf3:11", b: "spine1:5", rate: 1Gbps}
  - {a: "leaf3:12", b: "spine1:6", rate: 1Gbps}
  - {a: "leaf3:13", b: "spine2:3", rate: 1Gbps}
`

// TestShapes: ECMP uses parallel links, NICs at two leaves and LAGs, and leaves out links that are down.
func TestShapes(t *testing.T) {
	c, err := config.Parse("shapes.yaml", []byte(shapes), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := New(c)
	down := func(names ...string) State {
		s := State{DownLinks: map[string]bool{}}
		for _, n := range names {
			s.DownLinks[n] = true
		}
		return s
	}
	leaf1Gone := State{SuspectSwitches: map[string]bool{"leaf1": true}}
	for _, tt := range []struct {
		name   string
		state  State
		sw, to string
		want   string // ports
	}{
		{"parallel links", State{}, "leaf3", "10.0.1.1", "[11 12 13]"},
		{"parallel links downwards", State{}, "spine1", "10.0.1.1", "[1 2]"},
		{"one of two parallel links", down("leaf1:11-spine1:1"), "spine1", "10.0.1.1", "[2]"},
		{"two leaves", State{}, "spine1", "10.0.2.1", "[1 2 3 4]"},
		{"two leaves, IPv6", State{}, "spine2", "2001:db8::1", "[1 2]"},
		{"at a leaf of two", State{}, "leaf2", "10.0.2.1", "[2]"},
		{"a NIC down: spines", down("leaf1:2-h2"), "spine1", "10.0.2.1", "[3 4]"},
		{"a NIC down: its leaf", down("leaf1:2-h2"), "leaf1", "10.0.2.1", "[11 12 13]"},
		{"a NIC down: its leaf, IPv6", down("leaf1:2-h2"), "leaf1", "2001:db8::1", "[11 12 13]"},
		{"a NIC down: the other leaf", down("leaf1:2-h2"), "leaf2", "10.0.2.1", "[2]"},
		{"a NIC down: another host of both leaves", down("leaf1:2-h2"), "spine1", "10.0.2.2", "[1 2 3 4]"},
		{"a NIC's port down", State{SuspectLinks: map[string]bool{"leaf1:2-h2": true}}, "spine1", "10.0.2.1", "[3 4]"},
		{"the ports of both NICs down", State{SuspectLinks: map[string]bool{"leaf1:2-h2": true, "leaf2:2-h2": true}}, "spine1", "10.0.2.1", "[1 2 3 4]"},
		{"a leaf gone", leaf1Gone, "spine1", "10.0.2.1", "[3 4]"},
		{"a leaf gone that has no other", leaf1Gone, "spine1", "10.0.1.1", "[1 2]"},
		{"both NICs down", down("leaf1:2-h2", "leaf2:2-h2"), "leaf1", "10.0.2.1", "[]"},
		{"a leaf without uplinks", down("leaf1:11-spine1:1", "leaf1:12-spine1:2", "leaf1:13-spine2:1"), "spine1", "10.0.2.1", "[3 4]"},
		{"LAG", State{}, "leaf1", "10.0.1.2", "[3 4]"},
		{"LAG from elsewhere", State{}, "spine1", "10.0.1.2", "[1 2]"},
		{"a member down", down("leaf1:3-h3"), "leaf1", "10.0.1.2", "[4]"},
		{"all members down", down("leaf1:3-h3", "leaf1:4-h3"), "leaf1", "10.0.1.2", "[]"},
		{"LAG over two switches", State{}, "leaf1", "10.0.2.2", "[5 6]"},
		{"one of its members down", down("leaf1:5-h4"), "leaf1", "10.0.2.2", "[6]"},
		{"one of its members down: spines", down("leaf1:5-h4"), "spine1", "10.0.2.2", "[1 2 3 4]"},
		{"all of its members at a switch", down("leaf1:5-h4", "leaf1:6-h4"), "leaf1", "10.0.2.2", "[11 12 13]"},
		{"all of its members at a switch: spines", down("leaf1:5-h4", "leaf1:6-h4"), "spine2", "10.0.2.2", "[2]"},
	} {
		if got := fmt.Sprint(ports(g.Routes(tt.state), tt.sw, tt.to)); got != tt.want {
			t.Errorf("%s: %s reaches %s by %s, want %s", tt.name, tt.sw, tt.to, got, tt.want)
		}
	}
	var macs []string
	for _, p := range g.Ports("leaf2")[:2] {
		macs = append(macs, fmt.Sprintf("%x", p.PeerMAC))
	}
	if got := strings.Join(macs, " "); got != "06010a000201 06000a000202" {
		t.Errorf("the second NIC and a member have the MAC addresses %s", got)
	}
	if racks, hosts := g.Prefixes(); racks != 4 || hosts != 1 {
		t.Errorf("%d prefixes, %d of them host routes, want 4 and 1", racks, hosts)
	}
}
