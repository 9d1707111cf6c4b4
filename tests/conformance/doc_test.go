package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/softswitch/standalone"
)

const page = "../../docs/targets/embedded-switch.md"

// The documentation lists exactly the switch's flags in its tables.
func TestFlagsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	// A line of the usage begins with its flag, a line of a table with one or more.
	flag := regexp.MustCompile(`--[a-z0-9-]+`)
	real := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^ +(-\w, )?--[a-z0-9-]+`).FindAllString(standalone.Usage(), -1) {
		real[flag.FindString(line)] = true
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, f := range flag.FindAllString(cells[1], -1) {
				if !strings.HasPrefix(f, "---") {
					documented[f] = true
				}
			}
		}
	}
	for f := range real {
		if !documented[f] {
			t.Errorf("%s is not in the tables of %s", f, page)
		}
	}
	for f := range documented {
		if !real[f] {
			t.Errorf("%s of %s is no flag", f, page)
		}
	}
}

// The documentation has every difference that the packages list, in the same words.
func TestDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	whole := plain(string(text))
	for _, path := range []string{"../../softswitch/engine/doc.go", "../../softswitch/arch/psa/psa.go", "../../softswitch/p4rt/doc.go"} {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		items := strings.Split(strings.ReplaceAll(string(source), "\n//", "\n"), "\n   - ")
		if len(items) < 2 {
			t.Errorf("%s lists no differences", path)
		}
		for _, item := range items[1:] {
			item, _, _ = strings.Cut(item, "\npackage ")
			if !strings.Contains(whole, "- "+plain(item)) {
				t.Errorf("%s does not say, as %s does: %s", page, path, plain(item))
			}
		}
	}
}
