package experiment

import (
	"context"
	"testing"
)

// TestPaperNumbers runs the papers' experiments and holds their measures within bounds that
// an implementation with a broken part leaves: no dual-RTT increase, no estimate of flows,
// another exponent, headroom that is not shared.
func TestPaperNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates some 200 ms of fabrics: seconds, and a minute with -race")
	}
	for name, bounds := range map[string][]bound{
		// Payload's share of the weighted max-min rates, 3 % either way.
		"soze-17": {
			{"", "flow 1 weight 1", 36.8, 39.1}, {"", "flow 1 weight 2", 36.8, 39.1}, {"", "flow 1 weight 3", 46.0, 48.9},
			{"", "flow 1 weight 6", 61.3, 65.2}, {"", "flow 2 weight 6", 10.2, 10.9}, {"", "flow 5 weight 6", 30.6, 32.6},
		},
		// The authors' ns-3 numbers: goodput in its range, queues within 6 %.
		"prioplus-10a": {
			{"", "priority 1 rising", 91.2, 94.9}, {"", "priority 4 rising", 91.2, 94.9}, {"", "priority 8 rising", 91.2, 94.9},
			{"", "priority 7 falling", 91.2, 94.9}, {"", "priority 1 falling", 91.2, 94.9},
			{"", "queue of priority 1", 47.4, 53.4}, {"", "queue of priority 4", 189, 213}, {"", "queue of priority 7", 327, 369}, {"", "drops", 0, 0},
		},
		"prioplus-10b": {
			{"", "queue mean", 170, 205}, {"", "queue p99", 195, 240}, {"", "FCT mean", 10_300, 11_500}, {"", "FCT p99", 12_600, 13_900}, {"", "drops", 0, 0},
		},
		// 24 fan-in flows of 64 KB stop F0 for half of 200 µs under SIH and not under DSH.
		"dsh-14": {
			{"sih none", "F0 in the 200 µs after", 15, 30}, {"dsh none", "F0 in the 200 µs after", 43, 48},
			{"sih dcqcn-vendor", "F0 in the 200 µs after", 15, 32}, {"dsh dcqcn-vendor", "F0 in the 200 µs after", 46, 52},
			{"sih powertcp", "F0 in the 200 µs after", 20, 45}, {"dsh powertcp", "PAUSE frames", 0, 0},
			{"sih none", "drops", 0, 0}, {"dsh none", "drops", 0, 0},
		},
		// P0 carries 94.8 Gb/s of payload before; DT loses more than 60 % of it whatever α, and
		// SPFC none where the pool holds what headroom is late to give back.
		"spfc-5": {
			{"dt 1", "F1 before", 46, 48}, {"dt 1", "F1 during the burst", 5, 25}, {"dt 4", "F1 during the burst", 5, 25},
			{"spfc", "F1 during the burst", 50, 92}, {"dt 34MB", "F1 during the burst", 20, 55},
			{"spfc 34MB", "F1 in the first ms", 80, 92}, {"spfc 34MB", "F1 during the burst", 88, 93},
			{"st", "drops", 0, 0}, {"dt 4", "drops", 0, 0}, {"spfc", "drops", 0, 0}, {"spfc 34MB", "drops", 0, 0},
		},
		// The heavier of two jobs that are alike otherwise ends first.
		"tpch-weights": {{"", "heavy job", 7000, 8500}, {"", "light job", 8600, 10_000}, {"", "drops", 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkBounds(t, name, bounds)
		})
	}
}

// TestAnnotatedExample keeps the file that explains the format readable.
func TestAnnotatedExample(t *testing.T) {
	f, err := Open("../examples/annotated.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Plans[0].Run(context.Background(), "annotated", 1, nil); err != nil {
		t.Fatal(err)
	}
}
