package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compiler is the version of clang that compiled the committed objects; another version's objects differ.
const compiler = "14."

// TestObjects compiles the sources with bpf2go's own command and compares the result with the committed objects.
func TestObjects(t *testing.T) {
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Skip("clang is not installed: apt-get install clang llvm libbpf-dev")
	}
	if _, err := os.Stat("/usr/include/bpf/bpf_helpers.h"); err != nil {
		t.Skip("libbpf's headers are not installed: apt-get install libbpf-dev")
	}
	if !strings.Contains(string(version), "clang version "+compiler) {
		t.Skipf("the objects are of clang %s, this is %s", compiler, version)
	}
	for object, source := range map[string]string{
		"program_bpfel.o": "headgate.bpf.c", "program_bpfeb.o": "headgate.bpf.c",
		"laws_bpfel_test.o": "laws.bpf.c", "laws_bpfeb_test.o": "laws.bpf.c",
	} {
		out := filepath.Join(t.TempDir(), object)
		target := strings.SplitN(strings.TrimSuffix(object, ".o"), "_", 3)[1]
		run := func(name string, args ...string) {
			t.Helper()
			if b, err := exec.Command(name, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, b)
			}
		}
		wd, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		run("clang", "-O2", "-mcpu=v1", "-O2", "-g", "-mcpu=v3", "-Wall", "-Werror", "-target", target, "-c", filepath.Join(wd, source), "-o", out,
			"-fno-ident", "-fdebug-prefix-map="+wd+"=.", "-fdebug-compilation-dir", ".", "-g")
		run("llvm-strip", "-g", out)
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(object)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s compiles to: run go generate ./hosts/tcp/kernel", object, source)
		}
	}
}
