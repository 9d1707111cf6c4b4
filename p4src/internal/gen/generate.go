package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// Names of the files that follow from all builds, relative to p4src.
const (
	idsFile       = "ids/p4info.go"
	tofinoIDsFile = "ids/tofino.go"
	constantsFile = "ids/constants.go"
	packedFile    = "build/" + jsonFile + ".gz" // what the binary embeds
)

// generate returns, by name, every file that follows from sources and builds: what needs no
// compiler. builds has one build of each target.
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
	if files[idsFile], err = idsSource(infos["bmv2"]); err != nil {
		return nil, fmt.Errorf("%s: %w", idsFile, err)
	}
	var onChips []*p4configv1.P4Info
	for _, c := range chips() {
		onChips = append(onChips, infos[c.name])
	}
	if files[tofinoIDsFile], err = tofinoIDsSource(onlyIn(onChips, infos["bmv2"])); err != nil {
		return nil, fmt.Errorf("%s: %w", tofinoIDsFile, err)
	}
	if files[docsFile], err = docsSource(dir, builds); err != nil {
		return nil, err
	}
	return files, nil
}

// pack returns the program compressed: as it stands in the tree where that is the same program,
// since another version of Go may write it in other bytes.
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
