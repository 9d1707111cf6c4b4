package routing

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/topology"
)

func TestDesired(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	lines := testenv.Lines(t, New(nil), env, "leaf2")
	// 4 ports, 3 other leaves with a prefix and a group each, 2 hosts.
	if len(lines) != 4+3*2+2 {
		t.Errorf("%d entries: %v", len(lines), lines)
	}
	for _, want := range []string{
		"ingress.routing.ecmp member 4 → set_next_hop(port=4, src_mac=02:00:00:02:00:04, dst_mac=02:00:00:06:00:02)",
		"ingress.routing.ecmp group 1 → members 3, 4, while their ports are up",
		"ingress.routing.ipv4_lpm dst_addr=10.0.1.0/30 → group 1",
		"ingress.routing.ipv4_lpm dst_addr=10.0.2.2/32 → member 2",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in %v", want, lines)
		}
	}
}

// TestBMv2: simple_switch_grpc crashes when all members of a group have lost their ports.
func TestBMv2(t *testing.T) {
	env := testenv.New(t, "../../..", func(s string) string { return strings.ReplaceAll(s, "target: embedded", "target: bmv2") })
	lines := testenv.Lines(t, New(nil), env, "leaf2")
	if !slices.Contains(lines, "ingress.routing.ecmp group 1 → members 3, 4") {
		t.Errorf("groups watch ports: %v", lines)
	}
}

// TestOneGroupChanges is what makes a lost link cheap.
func TestOneGroupChanges(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	before := testenv.Lines(t, New(nil), env, "leaf1")
	after := testenv.RouteLines(t, routing{}, env, "leaf1", topology.State{DownLinks: map[string]bool{"leaf2:3-spine1:2": true}})
	var changed []string
	for _, line := range after {
		if !slices.Contains(before, line) {
			changed = append(changed, line)
		}
	}
	if diff := cmp.Diff([]string{"ingress.routing.ecmp group 2 → members 4, while their ports are up"}, changed); diff != "" {
		t.Error(diff)
	}
}
