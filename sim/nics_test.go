package sim

import (
	"testing"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestNICs sends from a host with two links to one switch. It gets about twice the rate of one link, and packets queued
// for a link that fails use the other.
func TestNICs(t *testing.T) {
	end := func(down units.Time) (last units.Time) {
		g := must[*topo.Graph](t)(topo.LeafSpine(2, 4, 2, line100, line100))
		leaf, _ := g.Find("leaf0")
		g.Links = append(g.Links, topo.Link{A: 0, B: leaf, Rate: line100.Rate, Delay: line100.Delay})
		s := must[*Sim](t)(New(Config{Graph: g}))
		var flows []FlowSpec
		for n := range 40 {
			flows = append(flows, FlowSpec{Src: 0, Dst: 1 + n%3, Size: 500 * units.KB, Law: lineRate{}})
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		if down >= 0 {
			s.At(down, func(s *Sim) error { return s.SetLink(len(g.Links)-1, true) })
		}
		if err := s.Run(100 * units.Millisecond); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Results() {
			if r.FCT == 0 {
				t.Fatalf("down at %v: a flow to host %d never ends", down, r.Spec.Dst)
			}
			last = max(last, r.FCT)
		}
		return last
	}
	both, one, fails := end(-1), end(0), end(400*units.Microsecond)
	if one < 1600*units.Microsecond || 4*both > 3*one || fails <= both {
		t.Errorf("20 MB at 100 Gb/s take %v by one link, %v by two, and %v where one fails; want 1.6 ms or more, at most three quarters of that, and more than by two", one, both, fails)
	}
}
