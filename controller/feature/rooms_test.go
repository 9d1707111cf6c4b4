package feature_test

import (
	"fmt"
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

// edits are what a feature has to edit by hand outside of its folder and of its P4 control: those that
// every feature does, and those of a register in the poll report.
var edits, reportEdits = []string{
	"controller/features.go", "examples/leaf-spine.yaml",
	"p4src/headgate_v1model.p4", "p4src/internal/names/reasons.go", "p4src/v1model/constants.p4", "p4src/v1model/ids.p4",
}, []string{"p4src/pollreport/", "p4src/shared/headers.p4", "p4src/v1model/statistics.p4"}

// TestEdits counts them on sourcecheck, which has a table and a key: what else names it is its own,
// generated, a test or a document.
func TestEdits(t *testing.T) {
	const root = "../../"
	named := regexp.MustCompile(`(?i)source_?check`)
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), root)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			switch name {
			case ".git", "bin", "docs", "tests", "fabric", "p4src/build", "p4src/ids", "controller/feature", "controller/testdata":
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(name, "_test.go"), name == "p4src/v1model/source_check.p4", name == "softswitch/engine/translated.go",
			!slices.Contains([]string{".go", ".p4", ".yaml", ".proto", ".js", ".lua"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && named.Match(text) {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(files, edits) {
		t.Errorf("sourcecheck is named in\n%s, want\n%s", strings.Join(files, "\n"), strings.Join(edits, "\n"))
	}
}

// TestRecipe: README's recipe for another feature names every file outside of its room that it
// has to edit, and every interface that it may implement.
func TestRecipe(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(readme), "## Adding a sixth system\n")
	recipe, _, _ = strings.Cut(recipe, "\n## ")
	words := []string{
		"controller/feature/rooms_test.go", fmt.Sprintf("edits %d files", len(edits)), fmt.Sprintf("%d more", len(reportEdits)),
	}
	for _, file := range slices.Concat(edits, reportEdits) {
		for _, short := range []string{"p4src/internal/", "p4src/"} { // as the recipe shortens them
			if rest, in := strings.CutPrefix(file, short); in && !strings.HasPrefix(rest, "pollreport") {
				file = rest
				break
			}
		}
		words = append(words, strings.TrimSuffix(strings.TrimSuffix(file, "/"), "/reasons.go"))
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	optional := regexp.MustCompile(`(?m)^// (\w+) is a feature `)
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range optional.FindAllStringSubmatch(string(text), -1) {
			words = append(words, "`"+m[1]+"`")
		}
	}
	for _, w := range words {
		if !strings.Contains(recipe, w) {
			t.Errorf("the recipe does not name %s", w)
		}
	}
	if len(words) < 6 {
		t.Errorf("only %v are looked for", words)
	}
}
