package controller

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

// TestGoldenFaults compares every message with testdata/faults.txtar.
func TestGoldenFaults(t *testing.T) {
	const name = "testdata/faults.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		if base, ok := strings.CutSuffix(f.Name, ".err"); ok {
			want[base] = string(f.Data)
		}
	}
	for _, f := range archive.Files {
		base, ok := strings.CutSuffix(f.Name, ".yaml")
		if !ok {
			continue
		}
		t.Run(base, func(t *testing.T) {
			c, err := config.Parse(f.Name, f.Data, nil, Sections()...)
			var faults *yamlnode.Error
			if !errors.As(err, &faults) || c != nil {
				t.Fatalf("Parse = %v, %v, want a *yamlnode.Error", c, err)
			}
			got := faults.Error() + "\n"
			out.Files = append(out.Files, f, txtar.File{Name: base + ".err", Data: []byte(got)})
			if diff := cmp.Diff(want[base], got); diff != "" && !*update {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/faults.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		if strings.HasSuffix(file.Name, ".yaml") {
			f.Add(file.Data)
		}
	}
	for _, name := range []string{"leaf-spine", "lossless"} {
		text, err := os.ReadFile("../examples/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := config.Parse("f.yaml", text, nil, Sections()...)
		if err != nil {
			var faults *yamlnode.Error
			if !errors.As(err, &faults) || len(faults.Faults) == 0 || c != nil {
				t.Fatalf("Parse = %v, %v", c, err)
			}
			return
		}
		again, err := config.Parse("f.yaml", c.Source, nil, Sections()...)
		if err != nil {
			t.Fatalf("parsed once, but then: %v", err)
		}
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(config.Config{}, config.Switch{}), cmp.Comparer(func(a, b config.Host) bool { return a == b }), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Fatal(diff)
		}
	})
}
