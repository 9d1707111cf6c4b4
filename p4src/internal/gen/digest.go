package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
)

// compiledBy begins the first line of the digests.
const compiledBy = "# compiled by "

// digestLines returns the SHA-256 of every P4 source and of the artefacts, as sha256sum
// prints them, so that `cd p4src && sha256sum -c build/SOURCES.sha256` checks them too. The
// compiler's version stands in front, as a comment.
func digestLines(dir string, art artefacts) ([]byte, error) {
	names, err := sourceFiles(dir)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s%s\n", compiledBy, art.compiler)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(data), name)
	}
	fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(art.json), jsonFile)
	fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(art.p4info), p4infoFile)
	return out.Bytes(), nil
}

// sourceFiles lists the P4 sources under dir, sorted, by slash-separated relative names.
func sourceFiles(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".p4" {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	sort.Strings(names)
	return names, err
}

func sortedKeys(m map[string][]byte) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
