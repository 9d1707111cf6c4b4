package sourceguard

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/internal/testenv"
)

func TestDesired(t *testing.T) {
	f := New(nil)
	with := func(value string) []string {
		return testenv.Lines(t, f, testenv.New(t, "../../..", func(s string) string {
			s = strings.Replace(s, "ipv4: 10.0.1.1}", "ipv4: 10.0.1.1, ipv6: \"2001:db8:1::1\"}", 1)
			return strings.Replace(s, "edge_ports: false", "edge_ports: "+value, 1)
		}, f), "leaf1")
	}
	if lines := with("false"); len(lines) != 0 {
		t.Errorf("off, and it wants %v", lines)
	}
	// Ports 1 and 2 lead to hosts, 3 and 4 to spines.
	lines := with("true")
	for _, want := range []string{
		"ingress.source_check.source_check ingress_port=1 src_addr=10.0.1.1/32 → permit_source()",
		"ingress.source_check.source_check ingress_port=1 → refuse_source()",
		"ingress.source_check.source_check ingress_port=2 src_addr=10.0.1.2/32 → permit_source()",
		"ingress.source_check.source_check ingress_port=2 → refuse_source()",
		"ingress.source_check.source_check_ipv6 ingress_port=1 src_addr=2001:db8:1::1/128 → permit_source_ipv6()",
		"ingress.source_check.source_check_ipv6 ingress_port=1 src_addr=fe80::/10 → permit_source_ipv6()",
		"ingress.source_check.source_check_ipv6 ingress_port=1 src_addr=::/128 → permit_source_ipv6()",
		"ingress.source_check.source_check_ipv6 ingress_port=1 → refuse_source_ipv6()",
		"ingress.source_check.source_check_ipv6 ingress_port=2 → refuse_source_ipv6()",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q in %q", want, lines)
		}
	}
	if len(lines) != 4+7 {
		t.Errorf("%d entries: %q", len(lines), lines)
	}
}
