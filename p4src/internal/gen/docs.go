package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/p4src/internal/fit"
)

// docsFile is the document for operators of Tofino switches, relative to p4src.
const docsFile = "../docs/targets/tofino.md"

// Marks around a generated part of a document.
func beginMark(part string) string { return "<!-- generated: " + part + " -->\n" }

const endMark = "<!-- end of generated part -->\n"

// docsSource returns the document with its generated parts renewed: how the program fits each chip.
func docsSource(dir string, builds []build) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(docsFile)))
	if err != nil {
		return nil, err
	}
	text := string(data)
	for _, b := range builds {
		report, ok, err := b.fit()
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		part := fmt.Sprintf("Compiled by %s.\n\n%s", b.compiler, report.Markdown())
		if text, err = replacePart(text, "resources "+b.name, part); err != nil {
			return nil, err
		}
	}
	return []byte(text), nil
}

// fit decodes the build's summary of resources; false for targets that have none.
func (b build) fit() (*fit.Report, bool, error) {
	data := b.file(resourcesFile)
	if data == nil {
		return nil, false, nil
	}
	report, err := fit.Decode(data)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", path.Join(b.folder, resourcesFile), err)
	}
	return report, true, nil
}

// replacePart replaces what stands between a part's marks.
func replacePart(text, part, content string) (string, error) {
	before, rest, ok := strings.Cut(text, beginMark(part))
	if !ok {
		return "", fmt.Errorf("%s has no line %q", docsFile, strings.TrimSpace(beginMark(part)))
	}
	_, after, ok := strings.Cut(rest, endMark)
	if !ok {
		return "", fmt.Errorf("%s: part %q has no line %q", docsFile, part, strings.TrimSpace(endMark))
	}
	return before + beginMark(part) + content + endMark + after, nil
}
