package emulation

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/units"
)

// leaves is a fabric of leaves with n hosts each, joined by spines. Its names differ from the
// example's.
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

// TestSozeOnAnyFabric: the scenario uses the file's hosts and switches, whatever their names. It
// leaves out parts for which a fabric is too small, and refuses a fabric that is too small for the
// rest, with the reason.
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
	// The example's names are those in the documentation.
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

// TestWeightsInForce: if an operator changes a weight during a phase, the expected shares follow
// the weights of the phase's longer part, and the report names the change.
func TestWeightsInForce(t *testing.T) {
	phase := Phase{Name: "two flows, weights 1:2", Actions: []Action{
		{Start: &Flow{Name: "A", From: []string{"h1"}, To: "h3", Weight: 1}}, {Start: &Flow{Name: "B", From: []string{"h2"}, To: "h3", Weight: 2}},
	}}
	s := Shares("soze", "title", phase)
	for _, tt := range []struct {
		name        string
		at          units.Time // of the change of A's weight to 6
		share, from float64    // share of A, and the interval over which it is measured, in seconds
		changes     int
	}{
		{"nobody", 20 * units.Second, 1. / 3, 5, 0},
		{"early", 3 * units.Second, 3. / 4, 6.5, 1},
		{"late", 8 * units.Second, 1. / 3, 4, 1},
	} {
		rec := &Record{
			Config: leafSpine(t), Times: []units.Time{0, 10 * units.Second}, Flows: []FlowTotal{{Name: "A"}, {Name: "B"}},
			Wires: []network.Wire{{From: config.Endpoint{Node: "leaf1", Port: 1}, Rate: 50 * units.Mbps}}, Paths: [][][]int{{{0}, {0}}},
		}
		capacity := 50e6 * wireShare
		var sent [2]float64
		for at := units.Time(0); at <= 10*units.Second; at += 100 * units.Millisecond {
			weight, part := 1.0, 1./3
			if at >= tt.at {
				weight, part = 6, 3./4
			}
			rec.Series = append(rec.Series, Point{At: at, Flows: []FlowPoint{
				{Running: true, Weight: weight, Delivered: units.Bytes(sent[0])}, {Running: true, Weight: 2, Delivered: units.Bytes(sent[1])},
			}})
			sent[0] += part * capacity / 80
			sent[1] += (1 - part) * capacity / 80
		}
		p, err := rec.phase(&s, 0)
		if err != nil {
			t.Fatal(err)
		}
		a := p.Flows[0]
		if a.Share == nil || math.Abs(a.Share.Share/capacity-tt.share) > 1e-6 || math.Abs(a.Error) > 1 || math.Abs(p.FromUS/1e6-tt.from) > 0.11 {
			t.Errorf("%s: %+v, %+v", tt.name, p, a.Share)
		}
		if got := len(p.Actions) - len(phase.Actions); got != tt.changes || got > 0 && !strings.Contains(p.Actions[2], "A's weight becomes 6, by an operator at") {
			t.Errorf("%s: actions %q", tt.name, p.Actions)
		}
	}
}
