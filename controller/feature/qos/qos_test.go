package qos

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/internal/testenv"
)

func TestDesired(t *testing.T) {
	env := testenv.New(t, "../../..", func(s string) string {
		s = strings.Replace(s, "queue_limit: 1MB}", "queue_limit: 2MB}", 1)
		return strings.Replace(s, "kmin: 100KB, kmax: 400KB", "kmin: 64KB, kmax: 128KB", 1)
	})
	lines := testenv.Lines(t, New(nil), env, "spine2")
	for _, want := range []string{
		"ingress.classify.dscp_to_class default → set_class(class=0, queue=0)",
		"ingress.classify.dscp_to_class dscp=48 → set_class(class=6, queue=6)",
		"ingress.admission.queue_limit default → set_queue_limit(bytes=1000000)",
		"ingress.admission.queue_limit egress_port=1 queue=7 → set_queue_limit(bytes=2000000)",
		"egress.ecn.ecn_red queue=1 depth=2000..65535 priority 1 → set_mark_probability(p=65536)",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	// Two classes and a default, a limit and 8 exceptions, 16 steps and one above.
	if len(lines) != 3+9+17 {
		t.Errorf("%d entries:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if lines := testenv.Lines(t, New(nil), env, "leaf1"); len(lines) != 3+1+17 {
		t.Errorf("leaf1 has %d entries", len(lines))
	}
	if _, err := New(nil).Desired(env, "leaf9"); err == nil {
		t.Error("a switch that is not there has wants")
	}
}
