package emulation

import (
	_ "embed" // for the fabric file

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
	"github.com/headgate/headgate/units"
)

//go:embed fabrics/dsh.yaml
var dshFabric []byte

// dshScenario is DSH's Figure 14(b).
func dshScenario() Scenario {
	const buffer = "buffer: {headroom_method: dsh, size: 16MB, private: 3KB, headroom: 60KB, lossless: [0, 1, 2, 3, 4, 5, 6], "
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
		// Together they leave 1 % of the link free, so that F0 and F1 alone cause no PAUSE.
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

//go:embed fabrics/spfc.yaml
var spfcFabric []byte

// spfcScenario is SPFC's Figures 4 and 5.
func spfcScenario() Scenario {
	const buffer = "buffer: {headroom_method: dsh, size: 16MB, lossless: [0], lossy_private: 3KB, policy: "
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

// mixes are three traffic mixes on the default fabric, each under four buffer policies. Previews are
// compared with them (docs/research/accuracy.md).
func mixes() []Scenario {
	flow := func(name, from, to string) Action {
		return Action{Start: &Flow{Name: name, From: []string{from}, To: to}}
	}
	burst := func(name string, size units.Bytes, rounds int, to string, from ...string) Action {
		return Action{Start: &Flow{Name: name, From: from, To: to, Size: size, Rounds: rounds}}
	}
	return []Scenario{
		mix("incast", "a fan-in of all hosts to one, on the default fabric",
			"h1 to h7 send 64 KB each to h8 at once, while F0 runs from h1 to h7, by the same leaves and spines.",
			[]Action{flow("F0", "h1", "h7")},
			[]Action{burst("fan-in", 64*units.KB, 1, "h8", hosts("h", 1, 7)...)}),
		mix("permutation", "a permutation of the leaves, and more for one of its receivers, on the default fabric",
			"One host of each leaf sends to that of another one; then h2, h4 and h5 send 128 KB each to h8 too. F0 runs from h1 to h5.",
			[]Action{flow("F0", "h1", "h5"), flow("F1", "h3", "h8"), flow("F2", "h5", "h1"), flow("F3", "h8", "h3")},
			[]Action{burst("overload", 128*units.KB, 1, "h8", "h2", "h4", "h5")}),
		mix("bursts", "bursts of three sizes to three hosts, on the default fabric",
			"At once four hosts send four flows of 8 KB each to h2, four one of 64 KB to h5 and three one of 256 KB to h8, while F0 runs from h1 to h7.",
			[]Action{flow("F0", "h1", "h7")},
			[]Action{
				burst("small", 8*units.KB, 4, "h2", "h3", "h4", "h5", "h6"),
				burst("middle", 64*units.KB, 1, "h5", "h1", "h2", "h3", "h7"),
				burst("large", 256*units.KB, 1, "h8", "h1", "h4", "h6"),
			}),
	}
}

// mix returns one of them. The two lossless classes are the default fabric's data and
// acknowledgements. SIH reserves headroom for each, DSH for both together. 600 KB leave SIH too little
// for these bursts.
func mix(name, title, source string, calm, busy []Action) Scenario {
	policy := func(name, more string) Variant {
		return Variant{Name: name, Config: "buffer: {headroom_method: dsh, size: 600KB, private: 3KB, headroom: 60KB, resume_gap: 3KB, port_resume_gap: 3KB, policy: " + name + more + "}"}
	}
	limits := map[string]float64{}
	for _, h := range hosts("h", 1, 8) {
		limits[h] = 0.495
	}
	return Scenario{
		Name: name, Title: title, Source: source + " Hosts send without congestion control, each flow at 49.5 % of its link.",
		Fabric: examples.LeafSpine,
		Variants: []Variant{
			policy("sih", ", lossless: [0, 6], alpha: 1"), policy("dsh", ", lossless: [0, 6], alpha: 1"),
			policy("dt", ", lossless: [0], alpha: 1/8"), policy("spfc", ", lossless: [0], alpha: 1/8, spfc: {k: 5, period: 100us}"),
		},
		Phases: []Phase{
			{Name: "calm", For: 200 * units.Microsecond, Actions: calm},
			{Name: "busy", For: 200 * units.Microsecond, Whole: true, Actions: busy},
			{Name: "afterwards", For: 300 * units.Microsecond},
		},
		Law: LineRate, Limits: limits,
		Sample: 10 * units.Microsecond, Over: 50 * units.Microsecond,
		Lossless: true, Victim: "F0", Port: config.Endpoint{Node: "leaf4", Port: 2},
		Table: policyTable, Judge: func(r *Report) { r.noLosslessDrop("") },
	}
}
