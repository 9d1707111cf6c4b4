package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/routing"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/sim/topo"
)

// threeTier is a leaf below two aggregation switches with two cores each, and the same on the other side. The
// leaf's links have another order than its ports.
func threeTier() string {
	var b strings.Builder
	b.WriteString("name: three-tier\necmp: {hash: queue-pair, seed: 3}\nswitches:\n")
	for i, s := range []string{"leaf1", "agg1", "agg2", "core1", "core2", "core3", "core4", "agg3", "agg4", "leaf2"} {
		fmt.Fprintf(&b, "  - {name: %s, device_id: %d, address: \"127.0.0.1:%d\"}\n", s, i+1, 22100+i)
	}
	b.WriteString("hosts: [{name: h1, ipv4: 10.0.1.1}, {name: h2, ipv4: 10.0.2.1}]\nlinks:\n")
	for _, l := range []string{
		"leaf1:1 h1", "leaf2:1 h2", "leaf1:5 agg1:1", "leaf1:3 agg2:1", "leaf1:4 agg1:4", "leaf1:2 agg2:4", "agg1:2 core1:1", "agg1:3 core2:1",
		"agg2:2 core3:1", "agg2:3 core4:1", "core1:2 agg3:2", "core2:2 agg3:3", "core3:2 agg4:2", "core4:2 agg4:3", "leaf2:2 agg3:1", "leaf2:3 agg4:1",
	} {
		at, to, _ := strings.Cut(l, " ")
		fmt.Fprintf(&b, "  - {a: %q, b: %q, rate: 1Gbps}\n", at, to)
	}
	return b.String()
}

// TestPathsAreTheSwitches: in a preview, a flow takes the ports that the controller's routes and the switches' hash
// give, for both IP versions, with all links up and with one down.
func TestPathsAreTheSwitches(t *testing.T) {
	ipv6 := strings.NewReplacer("ipv4: 10.0.1.1", "ipv6: \"fd00::1:1\"", "ipv4: 10.0.2.1", "ipv6: \"fd00::2:1\"")
	for by, text := range map[ecmp.Fields]string{
		ecmp.QueuePair: threeTier(), ecmp.FiveTuple: ipv6.Replace(strings.Replace(threeTier(), "queue-pair", "five-tuple", 1)),
		ecmp.FlowLabel: ipv6.Replace(strings.Replace(threeTier(), "queue-pair", "flow-label", 1)),
	} {
		testPaths(t, parse(t, "three-tier.yaml", text), by)
	}
}

func testPaths(t *testing.T, c *config.Config, by ecmp.Fields) {
	t.Helper()
	for _, down := range []map[string]bool{nil, {"leaf1:4-agg1:4": true}} {
		tr, err := translate(after, c, down)
		if err != nil {
			t.Fatal(err)
		}
		g := tr.Config.Graph
		ports := topo.NewPorts(g)
		router := topo.NewRouter(g, ports)
		src, _ := g.Find("h1")
		dst, _ := g.Find("h2")
		graph := topology.New(c)
		routes := graph.Routes(topology.State{DownLinks: down})
		used := map[string]bool{}
		for k := range 200 {
			f := topo.Flow{Hash: uint64(k), SrcPort: 1000 + uint16(k), DstPort: ids.UDPPortRoCE}
			path, err := router.Path(nil, src, dst, f)
			if err != nil {
				t.Fatal(err)
			}
			at := "leaf1"
			for _, port := range path[1:] {
				l := g.Links[ports.Link[port]]
				got := l.PortA
				if l.B == ports.Node[port] {
					got = l.PortB
				}
				want := nextHop(c, routes, at, k, by)
				if g.Names[ports.Node[port]] != at || got != want {
					t.Fatalf("flow %d: %s:%d, want %s:%d", k, g.Names[ports.Node[port]], got, at, want)
				}
				used[fmt.Sprintf("%s:%d", at, got)] = true
				at = g.Names[ports.Node[ports.Peer[port]]]
			}
			if at != "h2" {
				t.Fatalf("flow %d ends at %s", k, at)
			}
		}
		if want := 15 - len(down); len(used) != want {
			t.Errorf("%v: %d ports are used, want %d: %v", down, len(used), want, used)
		}
	}
}

// nextHop returns the port through which a switch sends flow k to h2.
func nextHop(c *config.Config, routes *topology.Routes, sw string, k int, by ecmp.Fields) uint32 {
	for _, r := range routes.ForSwitch(sw) {
		for i, p := range r.Prefixes {
			switch {
			case !p.Contains(c.Host("h2").Addresses()[0]):
			case r.Group == 0:
				return r.NextHops[i].Port
			default:
				f := ecmp.Flow{Src: c.Host("h1").Addresses()[0], Dst: c.Host("h2").Addresses()[0], Protocol: 17, SrcPort: 1000 + uint16(k), DstPort: 4791, By: by, QueuePair: uint32(k), FlowLabel: 1000 + uint32(k)}
				return r.NextHops[f.Choose(routing.SeedOf(c.Switch(sw)), len(r.NextHops))].Port
			}
		}
	}
	return 0
}
