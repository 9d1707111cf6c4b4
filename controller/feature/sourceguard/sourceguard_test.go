package sourceguard

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
)

// environment is the example fabric with a section; "" adds none. h1 also has an IPv6 address.
func environment(t *testing.T, f *feature.Feature, section string) *feature.Env {
	t.Helper()
	return testenv.New(t, "../../..", func(s string) string {
		return strings.Replace(s, "ipv4: 10.0.1.1}", "ipv4: 10.0.1.1, ipv6: \"2001:db8:1::1\"}", 1) + "\n" + section
	}, f)
}

const on, off = "source_check: {edge_ports: true}\n", "source_check: {edge_ports: false}\n"

func TestDesired(t *testing.T) {
	f := New(nil)
	if lines := testenv.Lines(t, f, environment(t, f, off), "leaf1"); len(lines) != 0 {
		t.Errorf("off, and it wants %v", lines)
	}
	// Ports 1 and 2 lead to hosts, 3 and 4 to spines.
	for _, section := range []string{"", on} {
		lines := testenv.Lines(t, f, environment(t, f, section), "leaf1")
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
				t.Errorf("with %q no %q in %q", section, want, lines)
			}
		}
		if len(lines) != 4+7 {
			t.Errorf("with %q %d entries: %q", section, len(lines), lines)
		}
	}
}

// TestChips: a chip has the same entries as v1model.
func TestChips(t *testing.T) {
	f := New(nil)
	env := environment(t, f, "")
	want := testenv.Lines(t, f, env, "leaf1")
	got := testenv.Lines(t, f, testenv.WithPipeline(env, testenv.Tofino(t, "tofino1")), "leaf1")
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPlanNames: a plan's note names ports by their hosts' addresses.
func TestPlanNames(t *testing.T) {
	f := New(nil)
	notes := func(section, sw string) []string {
		return f.Advise(testenv.AtSwitch(environment(t, f, section), sw), nil)
	}
	list := notes("", "leaf1")
	if len(list) != 1 || !strings.Contains(list[0], "port 1 from 10.0.1.1 and 2001:db8:1::1 (h1), 2 from 10.0.1.2 (h2); ") {
		t.Errorf("%q", list)
	}
	if list := append(notes(off, "leaf1"), notes("", "spine1")...); len(list) != 0 {
		t.Errorf("off, or without hosts: %q", list)
	}
}
