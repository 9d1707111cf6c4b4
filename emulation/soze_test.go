package emulation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// leaves is a fabric of leaves with hosts each, joined by spines. Names are not the example's.
func leaves(t *testing.T, leaves, spines, hosts int) *config.Config {
	t.Helper()
	var switches, names, links []string
	for l := range leaves + spines {
		switches = append(switches, fmt.Sprintf("{name: rack%d, device_id: %d, address: 'h:%d', target: embedded}", l, l+1, l+1))
	}
	for l := range leaves {
		for h := range hosts {
			name := fmt.Sprintf("node-%d-%d", l, h)
			names = append(names, fmt.Sprintf("{name: %s, ipv4: 10.0.%d.%d}", name, l, h+1))
			links = append(links, fmt.Sprintf("{a: 'rack%d:%d', b: %s, rate: 50Mbps}", l, h+1, name))
		}
		for s := range spines {
			links = append(links, fmt.Sprintf("{a: 'rack%d:%d', b: 'rack%d:%d', rate: 50Mbps}", l, hosts+s+1, leaves+s, l+1))
		}
	}
	text := fmt.Sprintf("name: f\nscale: 2000\nswitches: [%s]\nhosts: [%s]\nlinks: [%s]\n", strings.Join(switches, ", "), strings.Join(names, ", "), strings.Join(links, ", "))
	c, err := config.Parse("own.yaml", []byte(text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSozeOnAnyFabric: hosts and switches are the file's, whatever their names; what a fabric has no
// room for is left out, and one that is too small is refused with what is missing.
func TestSozeOnAnyFabric(t *testing.T) {
	all := "two flows, weights 1:2; a third joins, 1:2:4; a weight changes, 4:2:4; a flow leaves, 4:2"
	for _, tt := range []struct {
		name                  string
		leaves, spines, hosts int
		flows, links, phases  string
	}{
		{"like the example", 4, 2, 2, "A node-0-0>node-3-1, B node-1-0>node-3-1, C node-2-0>node-3-1, D node-0-1>node-2-1", "rack0–rack5", all + "; the bottleneck moves"},
		{"three spines", 3, 3, 3, "A node-0-0>node-2-2, B node-1-0>node-2-2, C node-2-0>node-2-2, D node-0-1>node-1-2", "rack0–rack4 rack0–rack5", all + "; the bottleneck moves"},
		{"one spine", 4, 1, 2, "A node-0-0>node-3-1, B node-1-0>node-3-1, C node-2-0>node-3-1", "", all},
		{"one host a leaf", 4, 2, 1, "A node-0-0>node-3-0, B node-1-0>node-3-0, C node-2-0>node-3-0", "", all},
		{"one switch", 1, 0, 8, "A node-0-0>node-0-7, B node-0-1>node-0-7, C node-0-2>node-0-7", "", all},
		{"three hosts", 1, 0, 3, "A node-0-0>node-0-2, B node-0-1>node-0-2", "", "two flows, weights 1:2; a weight changes, 4:2"},
	} {
		c := leaves(t, tt.leaves, tt.spines, tt.hosts)
		o := Options{Scenario: sozeScenario(), Config: c, For: DefaultFor}
		if _, err := o.validate(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var flows, links, phases []string
		for _, f := range o.Scenario.Flows() {
			flows = append(flows, fmt.Sprintf("%s %s>%s", f.Name, f.From[0], f.To))
		}
		for _, p := range o.Scenario.Phases {
			phases = append(phases, p.Name)
			for _, a := range p.Actions {
				if a.Link != nil {
					links = append(links, a.Link.A+"–"+a.Link.B)
				}
			}
		}
		if got := strings.Join(flows, ", "); got != tt.flows {
			t.Errorf("%s: flows %s, want %s", tt.name, got, tt.flows)
		}
		if got := strings.Join(links, " "); got != tt.links {
			t.Errorf("%s: links %s, want %s", tt.name, got, tt.links)
		}
		if got := strings.Join(phases, "; "); got != tt.phases {
			t.Errorf("%s: phases %s, want %s", tt.name, got, tt.phases)
		}
	}
	o := Options{Scenario: sozeScenario(), Config: leaves(t, 1, 0, 2), For: DefaultFor}
	if _, err := o.validate(); err == nil || err.Error() != "scenario soze: hosts: own.yaml has 2, want at least 3: two that send to the third" {
		t.Errorf("two hosts: %v", err)
	}
	// The example's are those of its documents.
	phases, err := sozePhases(leafSpine(t))
	if err != nil || len(phases) != 5 {
		t.Fatal(phases, err)
	}
	s := Scenario{Phases: phases}
	if a, d, l := s.flow("A"), s.flow("D"), phases[4].Actions[0].Link; a.From[0]+a.To+d.From[0]+d.To != "h1h8h2h6" || *l != (LinkChange{"leaf1", "spine2", false}) {
		t.Errorf("the example has A %+v, D %+v, link %+v", a, d, l)
	}
	if at := s.Times(40 * units.Second); len(at) != 6 {
		t.Errorf("times %v", at)
	}
}
