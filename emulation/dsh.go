package emulation

import (
	_ "embed" // for the fabric file

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

//go:embed fabrics/dsh.yaml
var dshFabric []byte

// dshScenario is DSH's Figure 14(b).
func dshScenario() Scenario {
	const buffer = "buffer: {size: 16MB, private: 3KB, headroom: 60KB, lossless: [0, 1, 2, 3, 4, 5, 6], "
	policy := func(name, more string) Variant {
		return Variant{Name: name, Config: buffer + "policy: " + name + more + "}"}
	}
	return Scenario{
		Name:  "dsh",
		Title: "DSH: collateral damage of a fan-in",
		Source: "DSH Figure 14(b): F0 and F1 share the link between two switches, 50 Gb/s each; 24 hosts at the right switch send 64 KB " +
			"each to F1's receiver at once. Where the right switch pauses the link, F0 suffers without having a part in the congestion. " +
			"F0 and F1 are limited to their halves by their NICs, without congestion control.",
		Fabric: dshFabric,
		Variants: []Variant{
			policy("sih", ", alpha: 1/16"),
			policy("static", ", threshold: 60KB"),
			policy("adaptive", ", alpha: 1/16"),
			policy("oversubscribed", ", alpha: 1/16"),
			policy("dsh", ", alpha: 1/16"),
			policy("dsh+spfc", ", alpha: 1/16"),
		},
		Phases: []Phase{
			{Name: "calm", For: 200 * units.Microsecond, Actions: []Action{
				{Start: &Flow{Name: "F0", From: []string{"h0"}, To: "r0"}}, {Start: &Flow{Name: "F1", From: []string{"h1"}, To: "r1"}},
			}},
			{Name: "fan-in", For: 300 * units.Microsecond, Whole: true, Actions: []Action{
				{Start: &Flow{Name: "fan-in", From: hosts("h", 2, 24), To: "r1", Size: 64 * units.KB}},
			}},
			{Name: "afterwards", For: 400 * units.Microsecond},
		},
		// Together they leave the link a hundredth, so that F0 and F1 themselves need no PAUSE.
		Law: LineRate, Limits: map[string]float64{"h0": 0.495, "h1": 0.495},
		Sample: 10 * units.Microsecond, Over: 50 * units.Microsecond,
		Lossless: true, Victim: "F0", Port: config.Endpoint{Node: "right", Port: 3},
		Table: policyTable, Judge: judgeDSH,
	}
}

func judgeDSH(r *Report) {
	r.noLosslessDrop("oversubscribed")
	sih, dsh := r.Variant("sih"), r.Variant("dsh")
	if sih != nil && dsh != nil {
		r.check(2*dsh.Pause.Frames <= sih.Pause.Frames && sih.Pause.Frames > 0,
			"DSH sends at most half of SIH's PAUSE frames", "%d of %d", dsh.Pause.Frames, sih.Pause.Frames)
	}
	if dsh != nil {
		r.check(dsh.Victim.Lost < 10, "DSH protects the victim: it loses less than 10 %", "%.1f %%", dsh.Victim.Lost)
	}
	if sih != nil && dsh != nil {
		r.check(sih.Victim.Lost > dsh.Victim.Lost+10, "under SIH the victim loses more", "%.1f %%", sih.Victim.Lost)
	}
}
