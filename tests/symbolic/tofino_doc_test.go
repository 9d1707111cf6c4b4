package symbolic

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var names = regexp.MustCompile("`([A-Za-z0-9]+)`")

// checkTable compares the table of tests in docs/targets/tofino.md with the program. Each parser and control is in
// one row. If a row says that random packets compare it with v1model's program, packets have reached all of its
// statements. A row for one chip says so: only on Tofino 2.
func checkTable(t *testing.T, chip *Chip, name string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/targets/tofino.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| feature | parsers and controls |")
	if !ok {
		t.Fatal("docs/targets/tofino.md has no table of features, parsers and controls")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	missed := chip.Missed()
	seen := map[string]int{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 7 {
			continue
		}
		if _, number, only := strings.Cut(cells[1], "only on Tofino "); only && "tofino"+number[:1] != name {
			continue
		}
		for _, m := range names.FindAllStringSubmatch(cells[2], -1) {
			name := m[1]
			seen[name]++
			if _, ok := missed[name]; !ok {
				t.Errorf("docs/targets/tofino.md: the program has no %s", name)
			}
			left := slices.DeleteFunc(missed[name], beyondFrame)
			if strings.Contains(cells[5], "random") && len(left) > 0 {
				t.Errorf("docs/targets/tofino.md says that random packets try %s, and none came to %s", name, strings.Join(left, " "))
			}
			if !slices.Contains([]string{"yes"}, strings.TrimSpace(cells[3])) || strings.TrimSpace(cells[6]) != "no" {
				t.Errorf("docs/targets/tofino.md: %s is compiled: %q, run on a chip: %q; want yes and no", name, cells[3], cells[6])
			}
		}
	}
	for name := range missed {
		if seen[name] != 1 {
			t.Errorf("docs/targets/tofino.md has %s in %d rows", name, seen[name])
		}
	}
}

// beyondFrame is the statement for a packet that is longer than its frame; a chip cannot detect that.
func beyondFrame(at string) bool {
	file, line, _ := strings.Cut(at, ":")
	text, err := os.ReadFile(p4 + "/" + file)
	n, wrong := strconv.Atoi(line)
	lines := strings.Split(string(text), "\n")
	return err == nil && wrong == nil && n > 1 && n <= len(lines) && strings.Contains(lines[n-2], "meta.arrival.beyond_frame == 1")
}
