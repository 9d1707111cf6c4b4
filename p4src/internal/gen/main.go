// Command gen compiles Headgate's P4 program with p4c and writes what follows from it: the
// BMv2 JSON and the P4Info in p4src/build, the digests that guard them, and the Go
// constants in p4src/ids.
//
//	go run ./p4src/internal/gen [-dir p4src]
//
// It needs p4c-bm2-ss on the PATH. Nothing is written when anything fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "folder of the P4 sources")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	art, err := compile(dir)
	if err != nil {
		return err
	}
	files, err := generate(dir, art)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(files) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Names of the generated files, relative to p4src.
const (
	jsonFile      = "build/headgate.json"
	p4infoFile    = "build/headgate.p4info.txtpb"
	digestFile    = "build/SOURCES.sha256"
	idsFile       = "ids/p4info.go"
	constantsFile = "ids/constants.go"
)

// artefacts is what p4c makes of the sources.
type artefacts struct {
	json, p4info []byte
	compiler     string // name and version
}

// generate returns every generated file by name.
func generate(dir string, art artefacts) (map[string][]byte, error) {
	ids, err := idsSource(art.p4info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p4infoFile, err)
	}
	constants, err := constantsSource(dir)
	if err != nil {
		return nil, err
	}
	digests, err := digestLines(dir, art)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		jsonFile:      art.json,
		p4infoFile:    art.p4info,
		digestFile:    digests,
		idsFile:       ids,
		constantsFile: constants,
	}, nil
}
