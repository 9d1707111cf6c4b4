package experiment

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestNoLosslessDropByTheStandard: with the standard's headroom, no policy loses a lossless packet, at any speed and
// cable length, in an incast of 32. The peers use the whole response time that IEEE 802.3 Annex 31B.3.7 allows. By
// default the test runs some of the combinations; HEADGATE_SWEEP=all runs all. Eq. 1's headroom loses packets at 400
// Gb/s, which shows that the peers use their time. Without headroom_method, headroom is for the peers that the file has.
func TestNoLosslessDropByTheStandard(t *testing.T) {
	rates, metres, mtus := []int{10, 100, 400, 800}, []int{5, 300}, []int{1500, 9100}
	if os.Getenv("HEADGATE_SWEEP") == "all" {
		rates, metres = []int{10, 25, 40, 100, 200, 400, 800}, []int{5, 40, 100, 300}
	}
	const standard = "headroom_method: standard, "
	drops := func(peers, method, policy string, rate, metre, mtu int) (lost, pauses uint64) {
		t.Helper()
		more := ""
		if policy == "static" {
			more = ", threshold: 100KB"
		}
		text := fmt.Sprintf(`
title: sweep
topology: {kind: star, hosts: 33, host: {rate: %dGbps, delay: %dns}}
packet: {payload: %dB, header: 58B, ack: 64B}
pfc: {%s}
buffer: {policy: %s, %smtu: %dB, size: 24MB, alpha: 1/16, lossless: [0], lossy_private: 3KB%s}
flows: [{kind: incast, group: i, from: "1-32", to: h0, size: 600KB, law: none}]
run: {until: 100ms, stop_when_done: true}
measures: [{name: pauses, what: pauses}]
`, rate, 5*metre, mtu-58, peers, policy, method, mtu, more)
		f, err := Parse("sweep.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		o, err := f.Plans[0].Run(context.Background(), "sweep", 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o.Stats.Drops[0], o.Stats.PausesSent
	}
	played, paused := 0, 0
	for _, policy := range []string{"static", "dt", "sih", "adaptive", "dsh", "spfc", "dsh+spfc"} {
		for _, rate := range rates {
			for _, metre := range metres {
				for _, mtu := range mtus {
					lost, pauses := drops("response: standard", standard, policy, rate, metre, mtu)
					if played++; pauses > 0 {
						paused++
					}
					if lost > 0 {
						t.Errorf("%s at %d Gb/s, %d m, MTU %d B: %d lossless packets dropped", policy, rate, metre, mtu, lost)
					}
				}
			}
		}
	}
	t.Logf("%d combinations, of which %d paused", played, paused)
	if paused < played/2 {
		t.Errorf("only %d of %d combinations paused, so this shows little", paused, played)
	}
	for _, peers := range []string{"response: standard", "processing: 57920B"} {
		if lost, _ := drops(peers, "headroom_method: dsh, ", "sih", 400, 5, 1500); lost == 0 {
			t.Errorf("headroom of Eq. 1 lost nothing at 400 Gb/s, so peers with %s did not take their time", peers)
		}
		if lost, _ := drops(peers, "", "sih", 400, 5, 1500); lost > 0 {
			t.Errorf("by default %d packets were lost at 400 Gb/s with peers of %s", lost, peers)
		}
	}
}
