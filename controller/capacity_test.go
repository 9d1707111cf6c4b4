package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/yamlnode"
)

// crowd is a fabric of leaves with one host each and one uplink to every spine.
func crowd(leaves, spines int) []byte {
	var b strings.Builder
	b.WriteString("name: crowd\nswitches:\n")
	for i := range leaves + spines {
		fmt.Fprintf(&b, "  - {name: s%d, device_id: %d, address: \"127.0.0.1:%d\"}\n", i, i+1, i+1)
	}
	b.WriteString("hosts:\n")
	for i := range leaves {
		fmt.Fprintf(&b, "  - {name: h%d, ipv4: 10.0.%d.%d}\n", i, i>>8, i&255)
	}
	b.WriteString("links:\n")
	for i := range leaves {
		fmt.Fprintf(&b, "  - {a: \"s%d:500\", b: h%d, rate: 1Gbps}\n", i, i)
		for j := range spines {
			fmt.Fprintf(&b, "  - {a: \"s%d:%d\", b: \"s%d:%d\", rate: 1Gbps}\n", i, j+1, leaves+j, i+1)
		}
	}
	return []byte(b.String())
}

// TestWhatCannotFit: plan and apply refuse a fabric that exceeds the program's tables, and show the
// arithmetic, before they ask a switch.
func TestWhatCannotFit(t *testing.T) {
	c, err := New(options())
	if err != nil {
		t.Fatal(err)
	}
	const want = `hosts: makes the switch "s0" want 291 groups with 2328 next hops together of action profile ingress.routing.ecmp, which holds 2048`
	_, planned := c.Plan(context.Background(), "crowd.yaml", crowd(292, 8), 0)
	_, _, applied := c.Apply(context.Background(), "crowd.yaml", crowd(292, 8))
	for name, err := range map[string]error{"plan": planned, "apply": applied} {
		var faulty *yamlnode.Error
		if !errors.As(err, &faulty) || faulty.Faults[0].Line == 0 || faulty.Faults[0].Error() != want || len(faulty.Faults) != 21 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	if c.Config() != nil {
		t.Error("it was applied")
	}
}
