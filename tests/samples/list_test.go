package samples

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// kinds are the runs of each program, by the content of its tables.
var kinds = []string{
	"empty",  // nothing
	"test",   // the entries of its STF test; only for programs with one
	"random", // random entries, defaults and clone sessions
}

// reasons are the reasons why a program may differ.
var reasons = []string{
	"random",     // it draws random numbers
	"time",       // it shows times, or values that depend on them, such as queue lengths
	"undefined",  // the P4_16 specification leaves it open
	"deliberate", // a deliberate difference of docs/targets/embedded-switch.md
	"crash",      // BMv2 ends with a signal
	"refused",    // BMv2 refuses the program
	"endless",    // packets return without end, so there is nothing to compare
}

// difference is one line of differences.txt: a program, the runs in which it differs, the reason, and the
// explanation.
type difference struct {
	program string
	kinds   []string
	reason  string
	why     string
}

// parseDifferences reads lines PROGRAM KIND,KIND... REASON EXPLANATION; # begins a comment.
func parseDifferences(text string) (map[string]difference, error) {
	all := map[string]difference{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 4 {
			return nil, fmt.Errorf("line %d: want PROGRAM KINDS REASON EXPLANATION, not %q", n, strings.TrimSpace(line))
		}
		d := difference{program: words[0], kinds: strings.Split(words[1], ","), reason: words[2], why: strings.Join(words[3:], " ")}
		for _, k := range d.kinds {
			if !slices.Contains(kinds, k) {
				return nil, fmt.Errorf("line %d: run %q, allowed are %v", n, k, kinds)
			}
		}
		if !slices.Contains(reasons, d.reason) {
			return nil, fmt.Errorf("line %d: reason %q, allowed are %v", n, d.reason, reasons)
		}
		if _, ok := all[d.program]; ok {
			return nil, fmt.Errorf("line %d: program %q is listed twice", n, d.program)
		}
		all[d.program] = d
	}
	return all, nil
}

func known(t *testing.T) map[string]difference {
	t.Helper()
	text, err := os.ReadFile("differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseDifferences(string(text))
	if err != nil {
		t.Fatalf("differences.txt: %v", err)
	}
	return all
}

func TestKnownDifferencesParse(t *testing.T) { known(t) }

func TestWrongDifferencesAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a empty", "line 1: want PROGRAM"},
		{"# x\na full time why", `line 2: run "full"`},
		{"a empty,test because why", `reason "because"`},
		{"a empty time why\na test time why", `line 2: program "a" is listed twice`},
	} {
		if _, err := parseDifferences(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
}
