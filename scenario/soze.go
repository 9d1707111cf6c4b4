package scenario

import (
	"math"

	"github.com/headgate/headgate/units"
)

// tolerance is how far from its share a flow may be, in percent, and still count as there.
const tolerance = 5

// sozeScenario shares a leaf-spine fabric by weight. In the last phase two flows of leaf1 have
// only one uplink left, so that A's bottleneck moves from its receiver's port to leaf1's.
func sozeScenario() Scenario {
	return Shares("soze", "Söze: weighted max-min shares from one telemetry value",
		Phase{Name: "two flows, weights 1:2", Actions: []Action{
			{Start: &Flow{Name: "A", From: []string{"h1"}, To: "h8", SrcPort: 20001, Weight: 1}},
			{Start: &Flow{Name: "B", From: []string{"h3"}, To: "h8", SrcPort: 20002, Weight: 2}},
		}},
		Phase{Name: "a third joins, 1:2:4", Actions: []Action{
			{Start: &Flow{Name: "C", From: []string{"h5"}, To: "h8", SrcPort: 20003, Weight: 4}},
		}},
		Phase{Name: "a weight changes, 4:2:4", Actions: []Action{
			{Weight: &Weight{"A", 4}},
		}},
		Phase{Name: "a flow leaves, 4:2", Actions: []Action{
			{Stop: "C"},
		}},
		Phase{Name: "the bottleneck moves", Actions: []Action{
			{Link: &LinkChange{"leaf1", "spine2", false}},
			{Start: &Flow{Name: "D", From: []string{"h2"}, To: "h6", SrcPort: 20004, Weight: 8}},
		}},
	)
}

// Shares returns a scenario on the operator's fabric whose flows share it by weight with Söze,
// held against the weighted max-min shares of an independent solver.
func Shares(name, title string, phases ...Phase) Scenario {
	return Scenario{
		Name: name, Title: title, Variants: []Variant{{}}, Phases: phases,
		Law: Soze, Over: 200 * units.Millisecond,
		Table: sharesTable, Judge: judgeShares,
	}
}

// judgeShares wants every flow of every phase at its weighted max-min share and, unless faults
// were injected, no packet lost.
func judgeShares(r *Report) {
	for _, v := range r.valid() {
		worst, where := 0.0, "none ran"
		for _, p := range v.Phases {
			for _, f := range p.Flows {
				if e := math.Abs(f.Error); e >= worst {
					worst, where = e, f.Name+", "+p.Name
				}
			}
		}
		r.check(worst <= tolerance && where != "none ran", "every flow is within 5 % of its weighted max-min share",
			"at most %.1f %% away (%s)", worst, where)
		if len(v.Faults) == 0 {
			r.check(v.Losses.Dropped() == 0, "no packet is lost", "%d", v.Losses.Dropped())
		}
	}
}
