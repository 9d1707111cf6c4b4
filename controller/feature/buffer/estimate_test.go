package buffer

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/internal/testenv"
)

// A Tofino whose traffic manager keeps a policy of DSH gets the tables of the estimate, and
// nothing else of the buffer; other policies need no estimate.
func TestEstimateOnTofino(t *testing.T) {
	const leaf1 = `{name: leaf1, device_id: 1, address: "127.0.0.1:9551", target: embedded}`
	for _, chip := range []string{"tofino1", "tofino2"} {
		onChip := `{name: leaf1, device_id: 1, address: "127.0.0.1:9551", target: ` + chip + `, bf_runtime: "127.0.0.1:50052"}`
		fast := []string{"scale: 1000", "scale: 1", "rate: 100Mbps", "rate: 100Gbps"}
		env := testenv.On(environment(t, append(fast, leaf1, onChip)...), testenv.Tofino(t, chip))
		lines := testenv.Lines(t, New(nil), env, "leaf1")
		has(t, lines,
			// The first cell: log2 80 or 176, and 10 for 2^10 ns, in 1/65536: 16.3219 and 17.4594.
			"ingress.buffer.log2_bytes bytes=1/32 → set_log_bytes(log="+map[string]string{"tofino1": "1069674", "tofino2": "1144221"}[chip],
			"ingress.buffer.log2_ticks ticks=2/32 → set_log_ticks(log=65536",
			"ingress.buffer.exp2", "ingress.buffer.headroom_for profile=0",
			"egress.gradient.estimate_port egress_port=1 → set_profile(profile=0",
			"egress.gradient.estimate_port egress_port=2 → set_profile(profile=1")
		for _, l := range lines {
			if strings.HasPrefix(l, "egress.pfc") || strings.Contains(l, "buffer_policy") || strings.Contains(l, "clone session") {
				t.Errorf("%s: %s is the traffic manager's", chip, l)
			}
		}
		env = testenv.On(environment(t, append(fast, leaf1, onChip, "policy: dsh ", "policy: sih ")...), testenv.Tofino(t, chip))
		if lines := testenv.Lines(t, New(nil), env, "leaf1"); len(lines) != 0 {
			t.Errorf("%s: SIH has %d entries, such as %s", chip, len(lines), lines[0])
		}
	}
}
