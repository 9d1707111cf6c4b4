package engine_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stf"
)

var update = flag.Bool("update", false, "write testdata/*.stf anew from what the engine does; check with TestAgainstBMv2 first")

// TestCorpus runs the STF tests of testdata.
func TestCorpus(t *testing.T) {
	if *update {
		for name, draw := range frames {
			if name != "control" { // STF cannot express its entries
				record(t, name, draw)
			}
		}
	}
	files, err := filepath.Glob("testdata/*.stf")
	if err != nil || len(files) == 0 {
		t.Fatal("no tests in testdata", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			prog := mustLoad(t, strings.TrimSuffix(filepath.Base(file), ".stf"))
			test, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer test.Close()
			if err := stf.Run(prog, test, engine.Options{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// record writes a test of random packets and their results.
func record(t *testing.T, name string, draw func(r *rand.Rand) []byte) {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Random packets and what simple_switch makes of them; see TestCorpus -update.\n")
	b.WriteString(strings.TrimPrefix(entries[name], "\n"))
	sw, _ := configured(t, name)
	r := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		f := draw(r)
		clear(sw.Sent())
		send(t, sw, 2, f)
		fmt.Fprintf(&b, "packet 2 %x\n", f)
		for _, port := range slices.Sorted(maps.Keys(sw.Sent())) {
			for _, out := range sw.Sent()[port] {
				fmt.Fprintf(&b, "expect %d %s$\n", port, strings.ToLower(out))
			}
		}
	}
	if err := os.WriteFile("testdata/"+name+".stf", b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
