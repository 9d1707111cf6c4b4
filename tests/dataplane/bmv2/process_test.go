package bmv2

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLook: the error for a missing or incomplete program names its source.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, c := range []struct{ script, wants string }{
		{"", "simple_switch_CLI is not on the PATH: p4c and BMv2's programs come from p4lang's packages"},
		{"echo \"ModuleNotFoundError: No module named 'thrift'\" >&2; exit 1", "install the Debian package python3-thrift"},
		{"exit 0", ""},
	} {
		if c.script != "" {
			if err := os.WriteFile(filepath.Join(dir, CLI), []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		err := Look(CLI)
		if c.wants == "" && err != nil || c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)) {
			t.Errorf("%q: %v, want %q", c.script, err, c.wants)
		}
	}
}
