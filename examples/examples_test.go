package examples_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

const unknown = "no-such-key"

// keysAt returns the keys that the mapping at a path has, such as "switches[].tls"; nil when
// there is no mapping. The fault of an unknown key lists them.
func keysAt(path string) []string {
	text := "{" + unknown + ": 1}"
	for _, name := range slices.Backward(strings.FieldsFunc(path, func(r rune) bool { return r == '.' })) {
		if key, list := strings.CutSuffix(name, "[]"); list {
			text = "{" + key + ": [" + text + "]}"
		} else {
			text = "{" + key + ": " + text + "}"
		}
	}
	_, err := config.Parse("f", []byte(text), nil, controller.Sections()...)
	var faults *yamlnode.Error
	if !errors.As(err, &faults) {
		return nil
	}
	for _, f := range faults.Faults {
		field := strings.ReplaceAll(f.Field, "[0]", "[]")
		if keys, ok := strings.CutPrefix(f.Text, "unknown key, want one of "); ok && field == strings.TrimPrefix(path+"."+unknown, ".") {
			return strings.Split(keys, ", ")
		}
	}
	return nil
}

// allKeys returns the paths of all keys under a path.
func allKeys(path string) (list []string) {
	for _, key := range keysAt(path) {
		p := strings.TrimPrefix(path+"."+key, ".")
		list = append(list, p)
		list = append(list, allKeys(p)...)
		list = append(list, allKeys(p+"[]")...)
	}
	return list
}

// leaf-spine.yaml has every key of every section, in use or commented out.
func TestEveryKey(t *testing.T) {
	text, err := os.ReadFile("leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// A section ends where the next begins; one that is not in use begins with "# key:".
	begins := regexp.MustCompile(`(?m)^(?:# )?([a-z_]+):`)
	sections := map[string]string{}
	at := begins.FindAllSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections[string(text[m[2]:m[3]])] += string(text[m[0]:end])
	}
	keys := allKeys("")
	if len(keys) < 100 {
		t.Fatalf("only %d keys found: %q", len(keys), keys)
	}
	for _, path := range keys {
		names := strings.Split(strings.ReplaceAll(path, "[]", ""), ".")
		if len(names) > 2 && sections[names[1]] != "" {
			names = names[1:] // a switch's own section, which has the fabric's keys
		}
		section, key := sections[names[0]], names[len(names)-1]
		if !regexp.MustCompile(`(?m)(^|[ {])` + regexp.QuoteMeta(key) + `:`).MatchString(section) {
			t.Errorf("leaf-spine.yaml has no %s", path)
		}
	}
}

// All examples are free of faults, also with the sections that are commented out.
func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples %q, %v", files, err)
	}
	section := regexp.MustCompile(`(?m)^# [a-z_]+:.*\n(# .*\n)+`)
	used := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		full := section.ReplaceAllStringFunc(string(text), func(s string) string {
			used++
			return strings.TrimPrefix(strings.ReplaceAll(s, "\n# ", "\n"), "# ")
		})
		for _, text := range []string{string(text), full} {
			if _, err := config.Parse(name, []byte(text), nil, controller.Sections()...); err != nil {
				t.Error(err)
			}
		}
	}
	if used != 3 {
		t.Errorf("%d sections are commented out, want buffer, pfc_watchdog and pacc", used)
	}
}
