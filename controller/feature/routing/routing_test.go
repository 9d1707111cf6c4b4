package routing

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/topology"
)

func TestDesired(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	lines := testenv.Lines(t, New(nil), env, "leaf2")
	// 4 ports, 3 other leaves, 8 hosts.
	if len(lines) != 4+3+8 {
		t.Errorf("%d entries: %v", len(lines), lines)
	}
	for _, want := range []string{
		"ingress.routing.ecmp member 4 → set_next_hop(port=4, src_mac=02:00:00:02:00:04, dst_mac=02:00:00:06:00:02)",
		"ingress.routing.ecmp group 1 → members 3, 4",
		"ingress.routing.ipv4_lpm dst_addr=10.0.1.2/32 → group 1",
		"ingress.routing.ipv4_lpm dst_addr=10.0.2.2/32 → member 2",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in %v", want, lines)
		}
	}
}

// TestOneGroupChanges is what makes a lost link cheap.
func TestOneGroupChanges(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	before := testenv.Lines(t, New(nil), env, "leaf1")
	after := &feature.Env{Config: env.Config, Graph: env.Graph, Pipeline: env.Pipeline,
		Routes: env.Graph.Routes(topology.State{DownLinks: map[string]bool{"leaf2:3-spine1:2": true}})}
	var changed []string
	for _, line := range testenv.Lines(t, New(nil), after, "leaf1") {
		if !slices.Contains(before, line) {
			changed = append(changed, line)
		}
	}
	if diff := cmp.Diff([]string{"ingress.routing.ecmp group 2 → members 4"}, changed); diff != "" {
		t.Error(diff)
	}
}
