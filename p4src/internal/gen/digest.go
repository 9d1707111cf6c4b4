package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// compiledBy begins the first line of the digests.
const compiledBy = "# compiled by "

// digestLines returns the SHA-256 of every P4 source of the build and of its artefacts, as
// sha256sum prints them, so that `cd p4src && sha256sum -c build/SOURCES.sha256` checks them
// too. The compiler's version stands in front, as a comment.
func (b build) digestLines(dir string) ([]byte, error) {
	sources, err := sourceDigests(dir, b.main)
	if err != nil {
		return nil, err
	}
	if b.sources != "" && b.sources != sources {
		return nil, fmt.Errorf("%s: the sources changed while they were compiled", b.name)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s%s\n%s", compiledBy, b.compiler, sources)
	for _, name := range sortedKeys(b.files) {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(b.files[name]), name)
	}
	return out.Bytes(), nil
}

// sourceDigests returns the lines of a main and of what it includes.
func sourceDigests(dir, main string) (string, error) {
	names, err := sourceFiles(dir, main)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(data), name)
	}
	return out.String(), nil
}

// includeLine is an #include of a file of ours; the compiler's own stand in angle brackets.
var includeLine = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"([^"]+)"`)

// sourceFiles lists a main and every file that it includes, whatever the preprocessor's
// conditions, sorted, by slash-separated names relative to dir. As in the preprocessor, a
// name is relative to the file that includes it.
func sourceFiles(dir, main string) ([]string, error) {
	seen := map[string]bool{main: true}
	for todo := []string{main}; len(todo) > 0; todo = todo[1:] {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(todo[0])))
		if err != nil {
			return nil, err
		}
		for _, m := range includeLine.FindAllSubmatch(data, -1) {
			name := path.Join(path.Dir(todo[0]), string(m[1]))
			if !seen[name] {
				seen[name] = true
				todo = append(todo, name)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

func sortedKeys(m map[string][]byte) []string { return slices.Sorted(maps.Keys(m)) }
