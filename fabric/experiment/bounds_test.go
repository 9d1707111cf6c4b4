package experiment

import (
	"context"
	"testing"
)

// bound is what a measure of a variant may be, both ends included.
type bound struct {
	variant, measure string
	low, high        float64
}

// checkBounds runs a built-in experiment with seed 1 and holds its measures to bounds. It
// returns all measures by "variant/measure".
func checkBounds(t *testing.T, name string, bounds []bound) map[string]float64 {
	t.Helper()
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&Batch{File: f, Seed: 1, Seeds: 1, Shards: 1}).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, o := range r.Outcomes {
		for _, m := range o.Measures {
			got[o.Variant+"/"+m.Name] = m.Value
		}
	}
	for _, b := range bounds {
		v, ok := got[b.variant+"/"+b.measure]
		if !ok || v < b.low || v > b.high {
			t.Errorf("%s %s = %g, want %g to %g", b.variant, b.measure, v, b.low, b.high)
		}
	}
	return got
}
