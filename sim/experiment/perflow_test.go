package experiment

import (
	"math"
	"testing"

	"github.com/headgate/headgate/units"
)

// TestOfFlows: the numbers from a list of flows equal those of a run's measures with the same keys.
func TestOfFlows(t *testing.T) {
	flow := func(size int64, fct, ideal units.Time) FlowRecord {
		return FlowRecord{Size: size, FCT: fct * units.Microsecond, Ideal: ideal * units.Microsecond}
	}
	flows := []FlowRecord{flow(9999, 4, 2), flow(100, 2, 2), flow(10_000, 30, 10), flow(500, 0, 1)} // the last has not ended
	for _, tc := range []struct {
		what, sizes, stat string
		want              float64
	}{
		{"fct", "", "mean", 12},
		{"fct", "0-10KB", "mean", 3},
		{"slowdown", "0-10KB", "mean", 1.5},
		{"slowdown", "10KB-100KB", "p99", 3},
		{"fct", "", "p99", 30},
		{"fct", "1MB-", "mean", math.NaN()},
	} {
		got, err := FlowStat(flows, tc.what, tc.sizes, tc.stat)
		if err != nil || got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
			t.Errorf("%s of %q, %s: %v, %v, want %v", tc.what, tc.sizes, tc.stat, got, err, tc.want)
		}
	}
	if _, err := FlowStat(flows, "fct", "much", "mean"); err == nil {
		t.Error("sizes: much is taken")
	}
}
