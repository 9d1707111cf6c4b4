package emulation

import (
	_ "embed" // for the fabric file

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

//go:embed fabrics/spfc.yaml
var spfcFabric []byte

// spfcScenario is SPFC's Figures 4 and 5.
func spfcScenario() Scenario {
	const buffer = "buffer: {size: 16MB, lossless: [0], lossy_private: 3KB, policy: "
	variant := func(name, more string) Variant {
		return Variant{Name: name, CNPGap: notifyGap, Config: buffer + name + more + "}"}
	}
	return Scenario{
		Name:  "spfc",
		Title: "SPFC: a victim flow beside a burst",
		Source: "SPFC Figures 4 and 5, N = 24: H0 sends F1 to R1 and F2 to R2; then H1 to H24 send to R2. DCQCN at all hosts, 16 MB, " +
			"9 µs links. The paper's burst lasts longer than flows of 64 KB would; here each host sends eight of them one after the " +
			"other. α is 1/8, since bursts of this size leave of 16 MB nothing for anybody under the paper's 1 to 4.",
		Fabric: spfcFabric,
		Variants: []Variant{
			variant("dt", ", alpha: 1/8"),
			variant("static", ", threshold: 500KB"),
			variant("spfc", ", alpha: 1/8, spfc: {k: 5, period: 100us}"),
			variant("dsh+spfc", ", alpha: 1/8, spfc: {k: 5, period: 100us}"),
		},
		Phases: []Phase{
			{Name: "calm", For: 300 * units.Microsecond, Actions: []Action{
				{Start: &Flow{Name: "F1", From: []string{"h0"}, To: "r1"}}, {Start: &Flow{Name: "F2", From: []string{"h0"}, To: "r2"}},
			}},
			{Name: "burst", For: 500 * units.Microsecond, Whole: true, Actions: []Action{
				{Start: &Flow{Name: "burst", From: hosts("h", 1, 24), To: "r2", Size: 64 * units.KB, Rounds: 8}},
			}},
			{Name: "afterwards", For: 700 * units.Microsecond},
		},
		Law: DCQCN, Sample: 10 * units.Microsecond, Over: 50 * units.Microsecond,
		Lossless: true, Victim: "F1", Port: config.Endpoint{Node: "switch", Port: 27},
		Table: policyTable, Judge: judgeSPFC,
	}
}

func judgeSPFC(r *Report) {
	r.noLosslessDrop("")
	if dt := r.Variant("dt"); dt != nil {
		r.check(dt.Victim.Lost > 50, "under DT the victim loses more than half of its throughput", "%.1f %%", dt.Victim.Lost)
	}
	if v := r.Variant("spfc"); v != nil {
		r.check(v.Victim.Lost < 10, "under SPFC it loses less than 10 %", "%.1f %%", v.Victim.Lost)
	}
}
