package experiment

import (
	"context"
	"math"
	"testing"
)

// near is the fraction by which a run's number may differ from the recorded one. Runs do not depend on the
// machine. A change of the simulator that moves a number further requires new records of its figures.
const near = 0.01

// bound is the allowed range of a variant's measure, both ends included.
type bound struct {
	variant, measure string
	low, high        float64
}

// checkBounds runs a built-in experiment with as many seeds as its claims need. It compares the variants'
// measures with bounds, and each claim with the number and verdict of the record.
func checkBounds(t *testing.T, name string, bounds []bound) {
	t.Helper()
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&Batch{File: f, Seed: 1, Seeds: f.Seeds, Shards: 1}).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	bySeed := map[uint64]map[string]float64{}
	for _, o := range r.Outcomes {
		if bySeed[o.Seed] == nil {
			bySeed[o.Seed] = map[string]float64{}
		}
		for _, m := range o.Measures {
			bySeed[o.Seed][o.Variant+"/"+m.Name] = m.Value
		}
	}
	for seed, got := range bySeed {
		for _, b := range bounds {
			v, ok := got[b.variant+"/"+b.measure]
			if !ok || v < b.low || v > b.high {
				t.Errorf("seed %d: %s %s = %g, want %g to %g", seed, b.variant, b.measure, v, b.low, b.high)
			}
		}
	}
	checkClaims(t, f, r)
}

// checkClaims requires the numbers and verdicts that the pages show.
func checkClaims(t *testing.T, f *File, r *Report) {
	t.Helper()
	rec, _, err := f.Recorded()
	if err != nil || rec == nil && len(f.Claims) > 0 {
		t.Fatalf("%s: no record (%v)", f.Name, err)
	}
	for i, j := range r.Judgements {
		if want := rec.Judgement(&f.Claims[i]); want == nil {
			t.Errorf("the record of %s lacks the claim %q: run it again (headgate sim figures)", f.Name, j.Claim)
		} else if j.Verdict != want.Verdict || !like(&j, want) {
			t.Errorf("%s: %s, of %s: %s; the record has %s of %s", j.Claim, j.OursText(), j.Paper, j.Verdict, want.Verdict, want.OursText())
		}
	}
}

// like reports whether a claim's number agrees with the recorded one, within near or, over several seeds, within
// its confidence interval.
func like(j, want *Judgement) bool {
	if j.Ours == nil || want.Ours == nil {
		return j.Ours == want.Ours
	}
	return math.Abs(*j.Ours-*want.Ours) <= max(near*math.Abs(*want.Ours), want.Half)
}
