package gnmi

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumented: the tables of docs/api/gnmi.md list exactly the leaves.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/api/gnmi.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, l := range Leaves {
		path := ""
		for _, e := range l.elems {
			if path += "/" + e.name; e.key != "" {
				path += "[" + e.key + "]"
			}
		}
		want = append(want, path)
	}
	below, word, code := "", regexp.MustCompile("^\\| path below `([^`]*)`"), regexp.MustCompile("`([^`]*)`")
	for line := range strings.Lines(string(text)) {
		if m := word.FindStringSubmatch(line); m != nil {
			below = m[1]
			continue
		}
		if below == "" || !strings.HasPrefix(line, "| `") {
			continue
		}
		first, dir := strings.Split(line, "|")[1], ""
		for _, m := range code.FindAllStringSubmatch(first, -1) {
			path := strings.ReplaceAll(m[1], "openconfig-p4rt:", "")
			if i := strings.LastIndex(path, "/"); i >= 0 {
				dir, path = path[:i], path[i+1:]
			}
			got = append(got, below+"/"+dir+"/"+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		for _, p := range want {
			if !slices.Contains(got, p) {
				t.Errorf("docs/api/gnmi.md does not have %s", p)
			}
		}
		for _, p := range got {
			if !slices.Contains(want, p) {
				t.Errorf("docs/api/gnmi.md has %s, which is not served", p)
			}
		}
	}
}
