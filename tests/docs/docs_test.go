// Package docs checks the pages of the documentation: links, anchors, kinds of events, and spelling.
package docs

import (
	"bufio"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const repository = "../.."

// pages returns the paths of all Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == filepath.Join(repository, "bin")):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			list = append(list, path)
		}
		return nil
	})
	if err != nil || len(list) < 20 {
		t.Fatalf("%d pages, %v", len(list), err)
	}
	return list
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	id      = regexp.MustCompile(`<a id="([^"]+)">`)
)

// anchors returns the fragments of a page's headings and ids, in GitHub's form.
func anchors(page string) map[string]bool {
	has := map[string]bool{}
	for _, m := range id.FindAllStringSubmatch(page, -1) {
		has[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := link.ReplaceAllString(strings.NewReplacer("`", "", "[", "]").Replace(m[1]), "")
		has[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, text)] = true
	}
	return has
}

// broken returns a page's links to missing files or headings.
func broken(t *testing.T, path, text string) []string {
	t.Helper()
	var list []string
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file, fragment, _ := strings.Cut(m[1], "#")
		target := filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
		if file == "" {
			target = path
		}
		if _, err := os.Stat(target); err != nil {
			list = append(list, m[1])
			continue
		}
		if fragment != "" && filepath.Ext(target) == ".md" {
			page, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(page))[fragment] {
				list = append(list, m[1])
			}
		}
	}
	return list
}

// TestLinks: each relative link names an existing file, and its fragment a heading of that file.
func TestLinks(t *testing.T) {
	for _, path := range pages(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range broken(t, path, string(text)) {
			t.Errorf("%s: the link to %s leads nowhere", path, l)
		}
	}
	bad := "[a](nothing.md) [b](README.md#nothing) ![c](nothing.png) [d](#nothing)\n```\n[e](nothing.md)\n```\n`[f](nothing.md)`"
	if found := broken(t, filepath.Join(repository, "README.md"), bad); len(found) != 4 {
		t.Errorf("of four broken links %q were found", found)
	}
}

// TestEvents: docs/reference/events.md lists exactly the kinds of events in the controller's sources.
func TestEvents(t *testing.T) {
	kind := regexp.MustCompile(`"((?:buffer|config|host|link|pacc|pfc|routes|session|state|switch|traffic_manager)\.[a-z_]+)"`)
	says := regexp.MustCompile(`Kind|\bkind\b|Event_SEVERITY_|Alarm +=|OverShare +=|Telemetry +=`)
	inSources := map[string]bool{}
	err := filepath.WalkDir(repository+"/controller", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if code, _, _ := strings.Cut(line, "//"); says.MatchString(code) {
				for _, m := range kind.FindAllStringSubmatch(code, -1) {
					inSources[m[1]] = true
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(repository + "/docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	onPage := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)`").FindAllStringSubmatch(string(text), -1) {
		onPage[m[1]] = true
	}
	for k := range inSources {
		if !onPage[k] {
			t.Errorf("docs/reference/events.md lacks %s", k)
		}
	}
	for k := range onPage {
		if !inSources[k] && !inSources[strings.TrimSuffix(k, "_over")] {
			t.Errorf("docs/reference/events.md has %s, which the controller never says", k)
		}
	}
}

const dictionary = "/usr/share/dict/british-english"

// TestSpelling: each word of the documentation is in the dictionary of Debian's wbritish or in words.txt, the
// words of the field. Code, and words with inner capitals or digits, are not checked.
func TestSpelling(t *testing.T) {
	if _, err := os.Stat(dictionary); err != nil {
		t.Skipf("no %s: apt install wbritish", dictionary)
	}
	known := map[string]bool{}
	for _, file := range []string{dictionary, "words.txt"} {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			known[strings.ToLower(s.Text())] = true
		}
		f.Close()
	}
	for _, w := range []string{"teh", "recieve", "ocurred", "buffor"} {
		if known[w] {
			t.Errorf("%q is taken for a word", w)
		}
	}
	unknown := map[string][]string{}
	word := regexp.MustCompile(`[\pL\pN_'’]+(?:[./:@][\pL\pN_]+)*`)
	for _, path := range pages(t) {
		if strings.Contains(path, "docs/reference/") || strings.Contains(path, "docs/results/") || strings.Contains(path, "testdata") {
			continue // generated
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		plain := regexp.MustCompile(`\]\([^)]*\)|<[^>]*>|https?://\S+`).ReplaceAllString(code.ReplaceAllString(fence.ReplaceAllString(string(text), ""), ""), " ")
		for _, w := range word.FindAllString(plain, -1) {
			w = strings.Trim(strings.TrimSuffix(strings.ReplaceAll(w, "’", "'"), "'s"), "'")
			if len(w) < 3 || strings.ContainsAny(w, "0123456789_./:@") || w[1:] != strings.ToLower(w[1:]) {
				continue
			}
			if l := strings.ToLower(w); !known[l] && !known[strings.TrimSuffix(l, "s")] && !slices.Contains(unknown[l], path) {
				unknown[l] = append(unknown[l], path)
			}
		}
	}
	list := make([]string, 0, len(unknown))
	for w := range unknown {
		list = append(list, w)
	}
	slices.SortFunc(list, cmp.Compare[string])
	for _, w := range list {
		t.Errorf("%s: %q is in no dictionary; mend it, or add it to tests/docs/words.txt", unknown[w][0], w)
	}
}
