package operator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/cli/operator/doctor"
)

// TestFindings: a finding that several switches share is one row, and no row is wider than 120
// columns.
func TestFindings(t *testing.T) {
	long := strings.Repeat("the program has no table for this ", 30)
	var list []doctor.Finding
	for _, s := range []string{"leaf1", "leaf2", "leaf3", "leaf4", "spine1"} {
		list = append(list,
			doctor.Finding{Area: "controller", Subject: s, Verdict: doctor.Fail, Text: "disconnected", Remedy: "see `headgate get switch " + s + "`"},
			doctor.Finding{Area: "capabilities", Subject: s, Verdict: doctor.Info, Text: long})
	}
	list = append(list, doctor.Finding{Area: "ports", Subject: "controller.metrics " + strings.Repeat("x", 60), Verdict: doctor.Warn, Text: long, Remedy: long})
	var out bytes.Buffer
	err := showFindings(&env{Output: command.Output{Format: command.Table, Out: &out}}, list)
	if err == nil || err.Error() != "5 of 11 checks failed" {
		t.Errorf("error = %v", err)
	}
	for _, l := range strings.Split(out.String(), "\n") {
		if ansi.StringWidth(l) > 120 {
			t.Errorf("%d columns: %s", ansi.StringWidth(l), l)
		}
	}
	for _, want := range []string{"FAIL     controller    leaf1 +4", "→ see `headgate get switch NAME`", "INFO     capabilities  leaf1 +4"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, out.String())
		}
	}
}
