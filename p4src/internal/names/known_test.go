// Package names compares the pipeline's control-plane API on all targets: tables with their keys and actions,
// action profiles, counters, digests, registers and the headers of packet I/O. One controller drives every target
// with the same code, so every difference needs a reason. The table in docs/targets/tofino.md has them, and is
// compared with the committed P4Infos.
package names

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// absent marks a side without the object or the aspect.
const absent = "–"

// Difference is an object, or an aspect of one, that differs between v1model and a chip.
type Difference struct {
	Object string // kind and name
	Aspect string // "key depth", "id", …; empty when one side lacks the object
	V1     string // on v1model; "–" when absent
	Tofino string // on Tofino; "–" when absent
}

// Reason gives the reason for differences.
type Reason struct {
	Why         string
	Chips       []string // the chip; empty for every chip
	Differences []Difference
}

// known reads the reasons in the document, one per row.
func known(t *testing.T) (list []Reason) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/targets/tofino.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| differs | why |\n| --- | --- |\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		r, err := parseReason(line)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

var (
	reasonRow  = regexp.MustCompile(`^\| (.+) \| (?:\(([^)]+)\) )?(.+) \|\n$`)
	aspectCell = regexp.MustCompile("^`(.+)`, (.+): (.+) on v1model, (.+) on Tofino$")
)

func parseReason(line string) (r Reason, err error) {
	m := reasonRow.FindStringSubmatch(line)
	if m == nil {
		return r, fmt.Errorf("%q: want | differences | why |", line)
	}
	if r.Why = m[3]; m[2] != "" {
		r.Chips = strings.Split(m[2], ", ")
	}
	for _, cell := range strings.Split(m[1], "<br>") {
		if a := aspectCell.FindStringSubmatch(cell); a != nil {
			r.Differences = append(r.Differences, Difference{a[1], a[2], a[3], a[4]})
			continue
		}
		side, objects, _ := strings.Cut(cell, ": ")
		d := map[string]Difference{"only on v1model": {V1: "yes", Tofino: absent}, "only on Tofino": {V1: absent, Tofino: "yes"}}[side]
		if d.V1 == "" {
			return r, fmt.Errorf("%q: want only on v1model, only on Tofino, or both values", cell)
		}
		for _, o := range strings.Split(objects, ", ") {
			d.Object = strings.Trim(o, "`")
			r.Differences = append(r.Differences, d)
		}
	}
	return r, nil
}
