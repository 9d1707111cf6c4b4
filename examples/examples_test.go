package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
)

// leaf-spine.yaml has every key of every section, used or commented out.
func TestEveryKey(t *testing.T) {
	text, err := os.ReadFile("leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// A section ends where the next begins. An unused section begins with "# key:".
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
	keys := config.Keys(controller.Sections())
	if len(keys) < 100 {
		t.Fatalf("only %d keys found: %v", len(keys), keys)
	}
	for _, k := range keys {
		path := k.Path
		names := strings.Split(strings.ReplaceAll(path, "[]", ""), ".")
		if len(names) > 2 && sections[names[1]] != "" {
			names = names[1:] // a switch's own section, with the same keys as the fabric's
		}
		section, key := sections[names[0]], names[len(names)-1]
		if !regexp.MustCompile(`(?m)(^|[ {])` + regexp.QuoteMeta(key) + `:`).MatchString(section) {
			t.Errorf("leaf-spine.yaml has no %s", path)
		}
	}
}

// All examples are valid, also with the commented sections.
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
	if used != 5 {
		t.Errorf("%d sections are commented out, want buffer, ecmp, pfc_watchdog, source_check and pacc", used)
	}
}
