package sonic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBuildImage imports the output of each template in a checkout of sonic-buildimage, exports it and imports it
// again. Both imports must agree. HEADGATE_SONIC_BUILDIMAGE is the checkout's path; testdata/render.py renders
// it, which needs python3-jinja2. The log has each refusal and each loss once, with the number of templates.
func TestBuildImage(t *testing.T) {
	checkout := os.Getenv("HEADGATE_SONIC_BUILDIMAGE")
	if checkout == "" {
		t.Skip("HEADGATE_SONIC_BUILDIMAGE is no checkout of sonic-buildimage")
	}
	text, err := exec.CommandContext(t.Context(), "python3", "testdata/render.py", checkout).Output()
	if err != nil {
		t.Fatal(err)
	}
	passed, all := map[string]bool{}, map[string]bool{}
	lost := map[string]int{}
	tables, same := 0, 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Buffer(nil, 1<<24); lines.Scan(); tables++ {
		var line struct {
			Files       []string
			Topo, Error string
			DB          json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		for _, f := range line.Files {
			all[f] = true
		}
		if line.Error != "" {
			lost["not rendered: "+kind(line.Error)]++
			continue
		}
		found, err := Import(line.Files[0], "s1", line.DB, true)
		if err != nil {
			lost["refused: "+kind(strings.TrimPrefix(err.Error(), line.Files[0]+": "))]++
			continue
		}
		c, err := parse(fabricOf(t, line.DB, found))
		if err != nil {
			t.Errorf("%s %s: %v", line.Files[0], line.Topo, err)
			continue
		}
		db, _, err := Export(c, &c.Switches[0], Options{Lanes: 4, Approximate: true})
		if err != nil {
			lost["not exported: "+kind(err.Error())]++
			continue
		}
		again, err := Import("db.json", "s1", encode(t, db), true)
		if err != nil {
			t.Errorf("%s %s: %v", line.Files[0], line.Topo, err)
			continue
		}
		if diff := cmp.Diff(string(found.Sections), string(again.Sections)); diff != "" {
			t.Errorf("%s %s:\n%s", line.Files[0], line.Topo, diff)
			continue
		}
		same++
		seen := map[string]bool{}
		for _, text := range slices.Concat(found.Warnings, found.Left) {
			seen[kind(text)] = true
		}
		for k := range seen {
			lost[k]++
		}
		for _, f := range line.Files {
			passed[f] = true
		}
	}
	var list strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(lost), func(a, b string) int { return lost[b] - lost[a] }) {
		fmt.Fprintf(&list, "%6d %s\n", lost[k], k)
	}
	t.Logf("%d of %d files, %d of %d folders' topologies say the same after import, export and import\n%s", len(passed), len(all), same, tables, &list)
	if same == 0 {
		t.Error("none is imported")
	}
}

// kind returns the first line of a message, without row names and numbers.
func kind(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	at, rest, _ := strings.Cut(text, ": ")
	if parts := strings.Split(at, "|"); len(parts) > 2 {
		at = parts[0] + "|…|" + parts[len(parts)-1]
	} else {
		at = parts[0]
	}
	var out strings.Builder
	for _, r := range at + ": " + rest {
		if r >= '0' && r <= '9' {
			r = '#'
		}
		if r == '#' && strings.HasSuffix(out.String(), "#") {
			continue
		}
		out.WriteRune(r)
	}
	s := out.String()
	return s[:min(len(s), 150)]
}
