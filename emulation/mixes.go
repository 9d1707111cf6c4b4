package emulation

import (
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
	"github.com/headgate/headgate/units"
)

// mixes are three traffic mixes on the default fabric, each under four buffer policies: what a preview of a
// change there says is held against them (docs/preview.md).
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

// mix is one of them. Two lossless classes are the default fabric's data and acknowledgements, which SIH keeps headroom
// for each, DSH for both together. 600 KB is what leaves SIH too little for these bursts.
func mix(name, title, source string, calm, busy []Action) Scenario {
	policy := func(name, more string) Variant {
		return Variant{Name: name, Config: "buffer: {size: 600KB, private: 3KB, headroom: 60KB, resume_gap: 3KB, port_resume_gap: 3KB, policy: " + name + more + "}"}
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
