package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The compiled program belongs to the source.
func TestL2IsCompiled(t *testing.T) {
	if _, err := exec.LookPath("p4c-bm2-ss"); err != nil {
		t.Skip("p4c-bm2-ss is not on the PATH: it comes from p4lang's packages (see README)")
	}
	dir := t.TempDir()
	cmd := exec.Command("p4c-bm2-ss", "--p4runtime-files", filepath.Join(dir, "l2.p4info.txtpb"), "-o", filepath.Join(dir, "l2.json"), "l2.p4")
	cmd.Dir = "l2"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"l2.json", "l2.p4info.txtpb"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("l2", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what p4c makes of l2.p4: compile it again", name)
		}
	}
}
