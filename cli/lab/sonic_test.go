package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sonicTool runs "sonic" and returns its standard output and its warnings.
func sonicTool(args ...string) (out, warnings string, err error) {
	c := newSonicCommand()
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err = c.Execute()
	return stdout.String(), stderr.String(), err
}

// The example uses shared headroom, which is only exported with --approximate. The exported file can
// be imported.
func TestSonic(t *testing.T) {
	const fabric = "../../examples/lossless.yaml"
	file := filepath.Join(t.TempDir(), "leaf1.json")
	if out, _, err := sonicTool("export", "-f", fabric, "--switch", "leaf1", "-o", file); err == nil || out != "" || !strings.Contains(err.Error(), fabric+":") {
		t.Errorf("%q, %v, want a fault of the file", out, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused export left a file")
	}
	out, warnings, err := sonicTool("export", "-f", fabric, "--switch", "leaf1", "-o", file, "--approximate")
	if err != nil || out != "" || !strings.Contains(warnings, "warning: "+fabric+": buffer.policy: ") {
		t.Fatalf("%q, %q, %v", out, warnings, err)
	}
	out, warnings, err = sonicTool("import", "-f", file)
	if err != nil || warnings != "" || !strings.HasPrefix(out, "buffer:\n  policy: sih\n  size: 16000000B\n  lossless: [3]\n") {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if plain, _, err := sonicTool("export", "-f", fabric, "--switch", "leaf1", "--approximate", "--ports", file); err != nil || plain != string(text) {
		t.Errorf("with its own ports: %v\n%s", err, plain)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"another switch": {[]string{"export", "-f", fabric, "--switch", "leaf9"}, `--switch: "leaf9" is no switch of ` + fabric},
		"many lanes":     {[]string{"export", "-f", fabric, "--switch", "leaf1", "--lanes", "9"}, "--lanes: 9 is not allowed"},
		"no ports":       {[]string{"export", "-f", fabric, "--switch", "leaf1", "--approximate", "--ports", fabric}, fabric + ": is no JSON object"},
		"no file":        {[]string{"import", "-f", fabric}, fabric + ": is no JSON object"},
	} {
		if _, _, err := sonicTool(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
