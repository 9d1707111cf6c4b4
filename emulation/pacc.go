package emulation

import (
	_ "embed" // for the fabric file
	"fmt"
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
			"all hosts. pacc-paper has carry: false, the paper's algorithm and the default of a fabric file: shares are rounded down, so " +
			"that two flows settle at Qth + 2/β1 = 165 KB. pacc has carry: true, which keeps what rounding takes from a share " +
			"for the next one. Both run in the switches; pacc-controller is pacc-paper over P4Runtime.",
		Fabric: paccFabric,
		Variants: []Variant{
			{Name: "dcqcn", CNPGap: notifyGap, Config: classes + "  ecn: [{queue: 0, kmin: 100KB, kmax: 400KB, pmax: 0.2}]\n"},
			pacc("pacc", ", at: switch, carry: true"),
			pacc("pacc-paper", ", at: switch"),
			pacc("pacc-controller", ", at: controller"),
		},
		Phases: []Phase{
			{Name: "calm", For: 600 * units.Microsecond, Actions: []Action{
				{Start: &Flow{Name: "L1", From: []string{"l1"}, To: "r1"}}, {Start: &Flow{Name: "L2", From: []string{"l2"}, To: "r1"}},
			}},
			{Name: "burst", For: 11400 * units.Microsecond, Whole: true, Actions: []Action{
				{Start: &Flow{Name: "burst", From: hosts("b", 1, 9), To: "r1", Size: 64 * units.KB}},
			}},
		},
		Law: DCQCN, Sample: 10 * units.Microsecond, Over: 50 * units.Microsecond,
		Port: config.Endpoint{Node: "torR", Port: 1}, Target: 125 * units.KB,
		Table: queueTable, Judge: judgePACC,
	}
}

// judgePACC judges pacc-paper, because carry: false is the default of a fabric file. DCQCN has no
// set-point, so each law's queue is judged steady at its own level.
func judgePACC(r *Report) {
	p, d := r.Variant("pacc-paper"), r.Variant("dcqcn")
	if p == nil {
		return
	}
	q := p.Queue
	r.check(q.SettledUS != nil, "under PACC with carry: false, the default, the queue settles within 20 % of Qth",
		"%.0f KB, %+.0f %%, %s", q.SettledKB, (q.SettledKB*1e3/float64(r.scenario.Target)-1)*100, after(q.SettledUS))
	a, b := p.Phases[1].Flows[0].Measured, p.Phases[1].Flows[1].Measured
	apart := math.Abs(a-b) / ((a + b) / 2) * 100
	r.check(apart < 10, "the long flows' throughputs differ by less than 10 %", "%.2f and %.2f Gb/s, %.1f %%", a/1e9, b/1e9, apart)
	if d == nil {
		return
	}
	r.check(q.SteadyUS != nil && (d.Queue.SteadyUS == nil || *q.SteadyUS < *d.Queue.SteadyUS),
		"its queue is steady sooner than DCQCN's alone, each within 20 % of its own level",
		"%s against %s", after(q.SteadyUS), after(d.Queue.SteadyUS))
	alone := d.Phases[1].Flows[0].Measured + d.Phases[1].Flows[1].Measured
	r.note("what it costs: the long flows together got %.2f Gb/s, %.2f with DCQCN alone, %+.1f %%, for %d notifications and %d",
		(a+b)/1e9, alone/1e9, ((a+b)/alone-1)*100, p.CNPs, d.CNPs)
	r.note("what it gains: the queue is %.0f … %.0f KB, %.0f … %.0f with DCQCN alone, and the burst is done after %.0f µs, %.0f there",
		q.LowKB, q.HighKB, d.Queue.LowKB, d.Queue.HighKB, p.burst().LastUS, d.burst().LastUS)
}

// after says when something came about.
func after(us *float64) string {
	if us == nil {
		return "never"
	}
	return fmt.Sprintf("after %.0f µs", *us)
}
