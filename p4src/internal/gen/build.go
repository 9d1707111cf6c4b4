package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
)

// Names of artefacts within a target's folder.
const (
	jsonFile      = "headgate.json"
	p4infoFile    = "headgate.p4info.txtpb"
	bfrtFile      = "bf-rt.json"
	resourcesFile = "resources.json"
	digestFile    = "SOURCES.sha256"
)

// target is one compilation of the program. Names are slash-separated and relative to
// p4src.
type target struct {
	name      string // "bmv2", "tofino1", "tofino2"
	main      string
	folder    string   // of its artefacts
	artefacts []string // in the folder
	remake    string   // the command that compiles it
}

func targets() []target {
	list := []target{{
		name: "bmv2", main: "headgate_v1model.p4", folder: "build",
		artefacts: []string{jsonFile, p4infoFile}, remake: "make p4",
	}}
	for _, c := range chips() {
		list = append(list, target{
			name: c.name, main: tofinoMain, folder: "build/" + c.name,
			artefacts: []string{bfrtFile, p4infoFile, resourcesFile}, remake: "make p4-tofino",
		})
	}
	return list
}

func (t target) digestFile() string { return path.Join(t.folder, digestFile) }

// build is what a compiler made for a target.
type build struct {
	target
	compiler string            // name and version
	sources  string            // their digests before it was made; empty for one that was read
	files    map[string][]byte // artefacts by name
	device   map[string][]byte // what only the device needs, by name in a folder of its own; not committed
}

// file returns an artefact by its name in the target's folder.
func (b build) file(name string) []byte { return b.files[path.Join(b.folder, name)] }

// p4info decodes the build's P4Info.
func (b build) p4info() (*p4configv1.P4Info, error) {
	var info p4configv1.P4Info
	if err := prototext.Unmarshal(b.file(p4infoFile), &info); err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(b.folder, p4infoFile), err)
	}
	return &info, nil
}

// readBuild reads a target's artefacts as they stand in the tree.
func readBuild(dir string, t target) (build, error) {
	b := build{target: t, files: map[string][]byte{}}
	for _, name := range t.artefacts {
		name = path.Join(t.folder, name)
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return build{}, fmt.Errorf("artefact of %s (%s makes it): %w", t.name, t.remake, err)
		}
		b.files[name] = data
	}
	digests, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(t.digestFile())))
	if err != nil {
		return build{}, fmt.Errorf("digests of %s (%s makes them): %w", t.name, t.remake, err)
	}
	first, _, _ := strings.Cut(string(digests), "\n")
	b.compiler = strings.TrimPrefix(first, compiledBy)
	return b, nil
}
