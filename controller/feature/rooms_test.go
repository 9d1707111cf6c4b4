package feature_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A feature is a room: what configures, shows and measures it stands in its folder. So no
// other file of the controller, the API or the command line names one.
var (
	// commonWords are features whose names are words that others need.
	commonWords = []string{"buffer", "routing", "telemetry"}
	// policies are other names of what a feature does.
	policies = []string{"söze", `\bdsh`, "_dsh", "(?-i:DSH)", "spfc", "pfcwd"}
	// allowed are the files, or folders, that name a feature all the same, and why.
	allowed = map[string]string{
		"api/headgate-buffer.yang":          "a model in OpenConfig's words, whose qos it augments",
		"controller/features.go":            "the list of features",
		"controller/config/reference/":      "the comments of the features' keys, which are written by its test",
		"controller/trafficmanager/tofino/": "how a chip does the buffer policies",
		"controller/trafficmanager/":        "what a traffic manager is asked to do",
		"controller/allocation/weights/":    "the weights are Söze's, whose law is at the hosts",
		"cli/lab/run.go":                    "the scenario of that name",
		"cli/lab/pacc.go":                   "the tool of that name",
		"cli/lab/soze.go":                   "the tool of that name",
		"cli/lab/spfc.go":                   "the tool of that name",
		"cli/lab/commands.go":               "the tool of that name",
		"p4src/pollreport/":                 "the fields of the report",
	}
)

// TestRooms finds features that are named outside their rooms.
func TestRooms(t *testing.T) {
	const root = "../../"
	words := slices.Clone(policies)
	rooms, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		if r.IsDir() && !slices.Contains(commonWords, r.Name()) {
			words = append(words, r.Name())
		}
	}
	words = append(words, "feature/("+strings.Join(commonWords, "|")+`)"`) // imports
	named := regexp.MustCompile(`(?i)` + strings.Join(words, "|"))
	used := map[string]bool{}
	for _, folder := range []string{"controller", "cli", "api", "p4src/pollreport"} {
		err := filepath.WalkDir(root+folder, func(path string, d fs.DirEntry, err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, root))
			switch {
			case err != nil:
				return err
			case d.IsDir() && name == "controller/feature":
				return filepath.SkipDir
			case d.IsDir() || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") || strings.Contains(name, "testdata/"):
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(text), "\n") {
				word := named.FindString(line)
				if word == "" {
					continue
				}
				if where := allowedBy(name); where != "" {
					used[where] = true
					continue
				}
				t.Errorf("%s:%d names %q: what a feature needs stands in controller/feature/…\n\t%s", name, i+1, word, strings.TrimSpace(line))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, why := range allowed {
		if !used[name] {
			t.Errorf("%s (%s) may name features and does not: take it off the list", name, why)
		}
	}
}

// allowedBy returns the entry of the list that allows a file; "" when none does.
func allowedBy(name string) string {
	for entry := range allowed {
		if name == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(name, entry) {
			return entry
		}
	}
	return ""
}
