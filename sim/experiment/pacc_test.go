package experiment

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/tests/race"
)

// TestPACCExperiments checks that the measures of pacc-6 and pacc-1 are within bounds that a broken controller
// exceeds.
func TestPACCExperiments(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("simulates more than a second of a switch: seconds, and minutes with the race detector")
	}
	for name, bounds := range map[string][]bound{
		"pacc-6": {
			// 125 KB + 20 KB per flow.
			{"pacc", "queue with two", 155, 175},
			{"pacc", "queue with four least", 185, 210}, {"pacc", "queue with four most", 200, 225},
			{"pacc", "flow 2 of four", 5.8, 6.05}, {"pacc", "flow 3 of four", 5.8, 6.05},
			{"pacc carry", "queue with two", 125, 150}, {"dcqcn", "queue with four least", 0, 20},
			{"dcqcn", "flow 4 of four", 6.3, 9}, {"pacc", "drops", 0, 0},
		},
		// Both analyses call this loop unstable. It empties the queue while alpha is high, and settles when alpha
		// has fallen.
		"pacc-100g": {
			{"two flows, unscaled", "goodput 1–5 ms", 80, 92}, {"two flows, unscaled", "queue 1–5 ms least", 0, 0},
			{"two flows, unscaled", "queue 15–20 ms least", 490, 560}, {"two flows, unscaled", "queue 15–20 ms most", 500, 580},
			{"two flows, scaled", "goodput 1–5 ms", 94.5, 94.95}, {"two flows, scaled", "queue 1–5 ms least", 50, 500},
			{"ten flows, unscaled", "queue 15–20 ms least", 560, 720}, {"ten flows, unscaled", "queue 15–20 ms most", 700, 880},
		},
		"pacc-1": {
			// Some bursts share a link between switches with the second flow.
			{"pacc", "queue peak", 570, 640}, {"pacc", "long 2", 23.35, 23.75},
			{"pacc", "long 1 from 2 ms", 22, 23.75}, {"pacc", "bursts FCT p99", 200, 240}, {"pacc", "drops", 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkBounds(t, name, bounds)
		})
	}
}

// Errors in a file's PACC settings name their place.
func TestPACCFaults(t *testing.T) {
	const head = "topology: {kind: star, hosts: 2, host: {rate: 25Gbps, delay: 1us}}\nflows: [{kind: flow, from: 0, to: 1, size: 1KB}]\nrun: {until: 1ms}\n"
	for text, want := range map[string]string{
		"pacc: {burst: 125KB}":         "at 25Gbps: burst: 125KB, want 0 or more and less than the threshold, 125KB",
		"pacc: {cnp_gap: 81us}":        "cnp gap: 81us",
		"pacc: {gamma: 1}":             "gamma",
		"pacc: {filter_weight: 2}":     "filter_weight",
		"pacc: {class: 8}":             "class",
		"pacc: {interval: 0.5us}":      "interval",
		"pacc: {max_flows: 999999999}": "max_flows",
	} {
		if _, err := Parse("f.yaml", []byte(head+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if _, err := Parse("f.yaml", []byte(head+"pacc: {class: 3, interval: 40us, carry: true, beta1: 0.1, beta2: 0.2, threshold: 60KB}")); err != nil {
		t.Error(err)
	}
}
