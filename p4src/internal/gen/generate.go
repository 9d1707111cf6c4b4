package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/headgate/headgate/p4src/internal/fit"
)

// Names of the files that follow from all builds, relative to p4src.
const (
	idsFile       = "ids/p4info.go"
	tofinoIDsFile = "ids/tofino.go"
	constantsFile = "ids/constants.go"
	packedFile    = "build/" + jsonFile + ".gz" // the file that the binary embeds
)

// idsHead begins the constants, with the name and the version of the program.
const idsHead = `// Package ids holds what switch and controller agree on: the P4Runtime ids and names of
// the program's objects, and the sizes and constants of its sources.
package ids

// PipelineName and PipelineVersion identify the program in its P4Info.
const (
	PipelineName = %q
	PipelineVersion = %q
)
`

// generate returns, by name, every file that is made from sources and builds without a compiler. builds has one
// build of each target.
func generate(dir string, builds []build) (map[string][]byte, error) {
	infos := map[string]*p4configv1.P4Info{}
	files := map[string][]byte{}
	for _, b := range builds {
		if program := b.file(jsonFile); program != nil {
			files[packedFile] = pack(dir, program)
		}
		info, err := b.p4info()
		if err != nil {
			return nil, err
		}
		infos[b.name] = info
	}
	var err error
	if files[constantsFile], err = constantsSource(dir); err != nil {
		return nil, err
	}
	if files[idsFile], err = idsSource(fmt.Sprintf(idsHead, infos["bmv2"].GetPkgInfo().GetName(), infos["bmv2"].GetPkgInfo().GetVersion()), infos["bmv2"]); err != nil {
		return nil, fmt.Errorf("%s: %w", idsFile, err)
	}
	var onChips []*p4configv1.P4Info
	for _, c := range chips() {
		onChips = append(onChips, infos[c.name])
	}
	if files[tofinoIDsFile], err = idsSource("package ids\n\n// These constants are only in the program for Tofino.\n", onlyIn(onChips, infos["bmv2"])); err != nil {
		return nil, fmt.Errorf("%s: %w", tofinoIDsFile, err)
	}
	if files[docsFile], err = docsSource(dir, builds); err != nil {
		return nil, err
	}
	return files, nil
}

// pack returns the program compressed. If the file in the tree holds the same program, pack returns that file,
// because another version of Go may compress it to other bytes.
func pack(dir string, program []byte) []byte {
	if old, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(packedFile))); err == nil {
		if r, err := gzip.NewReader(bytes.NewReader(old)); err == nil {
			if same, err := io.ReadAll(r); err == nil && bytes.Equal(same, program) {
				return old
			}
		}
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is one it has
	w.Write(program)                                        // a Buffer takes everything
	w.Close()
	return out.Bytes()
}

// docsFile is the document of the chips' resources, relative to p4src.
const docsFile = "../docs/reference/tofino-resources.md"

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
