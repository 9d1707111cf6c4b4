package compare

import (
	_ "embed" // for the fabric file
	"math"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

//go:embed fabrics/pacc.yaml
var paccFabric []byte

// paccScenario is PACC's Figures 1 to 3.
func paccScenario() Scenario {
	const classes = "qos:\n  classes: [{dscp: 0, class: 0}, {dscp: 56, class: 7}]\n"
	pacc := func(name, more string) Variant {
		return Variant{Name: name, Config: classes + "pacc: {enabled: true, cnp_dscp: 56" + more + "}\n"}
	}
	return Scenario{
		Name:  "pacc",
		Title: "PACC: two long flows and nine bursts",
		Source: "PACC Figures 1 to 3: two long flows from one rack to a server in another, as for Figure 3, so that they share a " +
			"bottleneck; after 600 µs nine servers of three racks send 64 KB each to the same server. 25 Gb/s, RTT 12 µs, DCQCN at " +
			"all hosts. pacc runs in the switches and keeps what rounding takes from a flow's share for the next one; pacc-paper " +
			"rounds down, so that two flows settle at Qth + 2/β1 = 165 KB; pacc-controller is pacc over P4Runtime.",
		Fabric: paccFabric,
		Variants: []Variant{
			{Name: "dcqcn", CNPGap: notifyGap, Config: classes + "  ecn: [{queue: 0, kmin: 100KB, kmax: 400KB, pmax: 0.2}]\n"},
			pacc("pacc", ", at: switch, carry: true"),
			pacc("pacc-paper", ", at: switch"),
			pacc("pacc-controller", ", at: controller, carry: true"),
		},
		Flows:  []Flow{{"L1", "l1", "r1"}, {"L2", "l2", "r1"}},
		Bursts: []Burst{{Name: "burst", From: hosts("b", 1, 9), To: "r1", At: 600 * units.Microsecond, Size: 64 * units.KB}},
		Law:    DCQCN,
		Before: Window{300 * units.Microsecond, 600 * units.Microsecond},
		During: Window{600 * units.Microsecond, 12000 * units.Microsecond},
		End:    12000 * units.Microsecond, Sample: 10 * units.Microsecond,
		Port: config.Endpoint{Node: "torR", Port: 1}, Target: 125 * units.KB,
		checks: paccChecks,
	}
}

func paccChecks(r *Report) []Check {
	p := r.Variant("pacc")
	if p == nil {
		return nil
	}
	q := &p.Queue
	away := (q.SettledKB*1e3/float64(r.scenario.Target) - 1) * 100
	out := []Check{check(q.Settled && math.Abs(away) <= settleBand*100,
		"with PACC the queue settles within 20 % of Qth", "%.0f KB, %+.0f %%, after %.0f µs", q.SettledKB, away, q.SettledUS)}
	a, b := p.Flows[0].During, p.Flows[1].During
	apart := math.Abs(a-b) / max((a+b)/2, 1e-9) * 100
	out = append(out, check(apart < 10, "the long flows' throughputs differ by less than 10 %", "%.2f and %.2f Gb/s, %.1f %%", a, b, apart))
	if d := r.Variant("dcqcn"); d != nil {
		never := "never"
		ok := q.Settled && (!d.Queue.Settled || q.SettledUS < d.Queue.SettledUS)
		if d.Queue.Settled {
			out = append(out, check(ok, "and it settles faster than under DCQCN alone", "%.0f µs against %.0f µs", q.SettledUS, d.Queue.SettledUS))
		} else {
			out = append(out, check(ok, "and it settles faster than under DCQCN alone", "%.0f µs against %s", q.SettledUS, never))
		}
	}
	return out
}
