package authz_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatTable: each test that docs/security.md names stands in the code.
func TestThreatTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, dir := range []string{".", "audit", "../state/cluster", "../daemon", "../p4runtime/session", "..", "../../internal/confine", "../../internal/gnmi", "../../internal/service", "../../tests/cluster"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	_, table, _ := strings.Cut(string(page), "## Threats")
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+)`").FindAllStringSubmatch(table, -1)
	for _, m := range names {
		if !strings.Contains(code.String(), "\nfunc "+m[1]+"(") {
			t.Errorf("there is no %s", m[1])
		}
	}
	if rows := strings.Count(table, "\n| ") - 2; len(names) < rows || rows < 15 {
		t.Errorf("%d tests for %d threats", len(names), rows)
	}
}
