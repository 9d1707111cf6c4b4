package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestCyclesDeadlock: a leaf-spine fabric deadlocks where package topo finds a cyclic buffer dependency (DSH Fig.
// 16), around exactly this cycle, and never without one.
func TestCyclesDeadlock(t *testing.T) {
	for _, tt := range []struct {
		name   string
		failed [][2]string
	}{
		{"whole", nil},
		{"one link failed", [][2]string{{"leaf3", "spine0"}}},
		{"DSH Figure 16", [][2]string{{"leaf3", "spine0"}, {"leaf0", "spine1"}}},
	} {
		g := must[*topo.Graph](t)(topo.LeafSpine(4, 2, 2, line100, line100))
		for _, f := range tt.failed {
			a, _ := g.Find(f[0])
			b, _ := g.Find(f[1])
			l, _ := g.LinkBetween(a, b)
			g.Links[l].Down = true
		}
		cycle := g.Cycles(t.Context(), 0).Now
		if (cycle != "") != (len(tt.failed) == 2) {
			t.Errorf("%s: cycle %q", tt.name, cycle)
		}
		found := 0
		for seed := range uint64(6) {
			s := must[*Sim](t)(New(Config{Graph: g, Seed: seed, NewBuffer: static(50*units.KB, 48*units.KB, 200*units.KB)}))
			var flows []FlowSpec
			for i := range 2 {
				for _, leaves := range [][2]int{{0, 3}, {3, 0}, {1, 2}, {2, 1}} {
					for j := range 2 {
						flows = append(flows, FlowSpec{Src: 2*leaves[0] + i, Dst: 2*leaves[1] + j, Size: units.MB, Law: lineRate{}})
					}
				}
			}
			if err := s.AddFlows(flows); err != nil {
				t.Fatal(err)
			}
			if err := s.WatchDeadlock(50*units.Microsecond, 400*units.Microsecond); err != nil {
				t.Fatal(err)
			}
			runAll(t, s, 4*units.Millisecond)
			d := s.FirstDeadlock()
			if d == nil {
				continue
			}
			found++
			around := strings.Split(cycle, "→")
			for _, p := range d.Ports {
				if name := g.Names[s.ports[p].node]; len(d.Ports) != len(around)-1 || !slices.Contains(around, name) {
					t.Errorf("%s, seed %d: %s is in a deadlock of %d ports, the cycle is %s", tt.name, seed, name, len(d.Ports), cycle)
				}
			}
		}
		t.Logf("%s: %d of 6 seeds deadlock; cycle %q", tt.name, found, cycle)
		if (found > 0) != (cycle != "") {
			t.Errorf("%s: %d of 6 seeds deadlock, and the cycle is %q", tt.name, found, cycle)
		}
	}
}
