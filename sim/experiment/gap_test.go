package experiment

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

const gaps = `
topology: {kind: star, hosts: 3, host: {rate: 100Gbps, delay: 1us}}
flows:
  - {kind: flow, group: a, from: h0, to: h2, size: 1MB}
  - {kind: flow, group: b, from: h1, to: h2, size: 2MB, start: 1ms}
run: {until: 2ms, stop_when_done: true}
measures:
  - {name: gap, what: gap, over: apart}
  - {name: gap of a, what: gap, over: apart, group: a}
  - {name: a, what: fct, group: a}
  - {name: b, what: fct, group: b}
variants:
  - {name: apart, set: {}}
  - {name: together, set: {flows: {b: {start: 0us}}}}
  - {name: cut short, set: {run: {until: 1ms, stop_when_done: false}}}
seeds: 2
`

// TestGap: the gap is the sum of the flows' parts, and is undefined while a flow is unfinished. A report joined
// from shards gives the same.
func TestGap(t *testing.T) {
	f, err := Parse("gaps.yaml", []byte(gaps))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for shard := range 2 {
		part, err := (&Batch{File: f, Seed: 1, Seeds: 2, Shard: shard, Shards: 2}).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	joined, err := Merge(filepath.Join(dir, "gaps"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := (&Batch{File: f, Seed: 1, Seeds: 2, Shards: 1}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, rep := range []*Report{whole, joined} {
		for seed := range 2 {
			apart, together, short := rep.Outcomes[seed], rep.Outcomes[2+seed], rep.Outcomes[4+seed]
			part := func(of string) float64 { return math.Abs(together.value(of)/apart.value(of) - 1) }
			if got, want := together.value("gap"), part("a")+part("b"); !(want > 0.5) || math.Abs(got-want) > 1e-9 {
				t.Errorf("gap %g, want %g", got, want)
			}
			if got, want := together.value("gap of a"), part("a"); math.Abs(got-want) > 1e-9 {
				t.Errorf("gap of a %g, want %g", got, want)
			}
			if got := apart.value("gap"); got != 0 {
				t.Errorf("gap to itself %g", got)
			}
			if got := short.value("gap"); !math.IsNaN(got) {
				t.Errorf("gap of a flow that goes on %g", got)
			}
		}
	}
}

func TestGapFaults(t *testing.T) {
	for old, want := range map[string]string{"over: apart, group": "over: nowhere, group", "over: apart}": "}"} {
		_, err := Parse("gaps.yaml", []byte(strings.Replace(gaps, old, want, 1)))
		if err == nil || !strings.Contains(err.Error(), "over") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
