package observed

import (
	"maps"
	"math"
	"testing"
)

func TestCompletions(t *testing.T) {
	small, large := Sizes{Below: 10_000}, Sizes{From: 10_000}
	type counts = map[Sizes]Completions
	var table Table
	for _, step := range []struct {
		what, host string
		counts     counts
		want       counts
	}{
		{"what ended before the first report is nobody's", "h1", counts{small: {5, 500, 10}}, counts{small: {}}},
		{"the difference counts", "h1", counts{small: {7, 900, 13}, large: {1, 50, 2}}, counts{small: {2, 400, 3}, large: {1, 50, 2}}},
		{"of each host", "h2", counts{small: {1, 1, 1}}, counts{small: {2, 400, 3}, large: {1, 50, 2}}},
		{"of each host, then", "h2", counts{small: {2, 11, 2}}, counts{small: {3, 410, 4}, large: {1, 50, 2}}},
		{"a host that was restarted begins from nothing", "h1", counts{small: {1, 30, 2}}, counts{small: {4, 440, 6}, large: {1, 50, 2}}},
		{"sums of times wrap", "h2", counts{small: {3, 5, 3}}, counts{small: {5, 434, 7}, large: {1, 50, 2}}},
		{"no number", "h2", counts{small: {4, 6, math.NaN()}}, counts{small: {5, 434, 7}, large: {1, 50, 2}}},
		{"less slowdown of more flows", "h1", counts{small: {9, 99, 1}}, counts{small: {5, 434, 7}, large: {1, 50, 2}}},
	} {
		table.Completed(step.host, step.counts)
		if got := table.Completions(); !maps.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}
	table.Gone("h1") // flows that end meanwhile are unknown
	table.Completed("h1", counts{small: {99, 990, 99}})
	if got := table.Completions()[small].Flows; got != 5 {
		t.Errorf("after a host was gone: %d flows, want 5", got)
	}
	many := counts{}
	for i := range uint64(100) {
		many[Sizes{From: i + 1}] = Completions{Flows: 1}
	}
	table.Completed("h3", many)
	if got := table.Completions(); len(got) != maxSizes {
		t.Errorf("%d ranges of sizes are kept, want %d", len(got), maxSizes)
	}
}
