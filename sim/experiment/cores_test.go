package experiment

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

// TestCoresAgree compares the beginning of every experiment on three cores with that on one: outcomes have the
// same text.
func TestCoresAgree(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("simulates the beginning of all experiments")
	}
	names, err := fs.Glob(builtin, "builtin/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parted := 0
	for _, name := range names {
		f, err := Open(strings.TrimSuffix(strings.TrimPrefix(name, "builtin/"), ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		p := f.Plans[len(f.Plans)-1]
		p.Until = min(p.Until, 20*units.Microsecond)
		p.changes = slices.DeleteFunc(p.changes, func(c change) bool { return c.at > p.Until })
		var want string
		for _, cores := range []int{1, 3} {
			p.Config.Cores = cores
			o, err := p.Run(t.Context(), f.Name, 1, nil)
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if o.work.Cores > 1 {
				parted++
			}
			if cores == 1 {
				want = string(text)
			} else if string(text) != want {
				t.Errorf("%s %s: on %d cores the outcome is another", f.Name, p.Variant, cores)
			}
		}
	}
	if parted < len(names)/4 {
		t.Errorf("%d of %d fabrics were parted", parted, len(names))
	}
}
