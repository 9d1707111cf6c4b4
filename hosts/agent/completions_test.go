package agent_test

import (
	"math"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/units"
)

// TestCompletions: completed flows are counted by size, with their slowdown against an idle path. Stopped flows are not
// counted.
func TestCompletions(t *testing.T) {
	s := newStar(t)
	const rate = 10 * units.Mbps
	h1 := s.host(config(1, rate), rate)
	s.host(config(2, rate), rate)
	run := func(specs ...agent.FlowSpec) (got [4]agent.Completions) {
		before := h1.Stats().Completions
		for _, spec := range specs {
			spec.Dst = addr(2)
			s.start(h1, spec)
		}
		s.loop.RunUntil(s.loop.Now() + 10*units.Second)
		for i, c := range h1.Stats().Completions {
			got[i] = agent.Completions{Flows: c.Flows - before[i].Flows, FCT: c.FCT - before[i].FCT, Slowdown: c.Slowdown - before[i].Slowdown}
		}
		return got
	}
	for _, tc := range []struct {
		name     string
		flows    []agent.FlowSpec
		want     [4]uint64
		slowdown float64 // of the one flow
	}{
		{"a packet", []agent.FlowSpec{{Size: 1000}}, [4]uint64{1}, 1},
		{"below the first bound", []agent.FlowSpec{{Size: 10*units.KB - 1}}, [4]uint64{1}, 1},
		{"at the first bound", []agent.FlowSpec{{Size: 10 * units.KB}}, [4]uint64{0, 1}, 1},
		{"the third range", []agent.FlowSpec{{Size: 100 * units.KB}}, [4]uint64{0, 0, 1}, 1},
		{"the last bound", []agent.FlowSpec{{Size: units.MB}}, [4]uint64{0, 0, 0, 1}, 1},
		{"two that share", []agent.FlowSpec{{Size: 50 * units.KB}, {Size: 50 * units.KB}}, [4]uint64{0, 2}, 0},
		{"one that does not end", []agent.FlowSpec{{}}, [4]uint64{}, 0},
	} {
		got := run(tc.flows...)
		for i, n := range tc.want {
			if got[i].Flows != n {
				t.Errorf("%s: %+v, want %v flows", tc.name, got, tc.want)
			}
			// Söze's law may send slightly below the link's rate.
			if tc.slowdown > 0 && n > 0 && (got[i].Slowdown < tc.slowdown || math.Abs(got[i].Slowdown-tc.slowdown) > 0.3) {
				t.Errorf("%s: slowdown %g, want %g", tc.name, got[i].Slowdown, tc.slowdown)
			}
		}
		if two := got[1]; two.Flows == 2 && (two.Slowdown < 3 || two.FCT == 0) {
			t.Errorf("%s: %+v, want them to take longer than alone", tc.name, two)
		}
	}
}
