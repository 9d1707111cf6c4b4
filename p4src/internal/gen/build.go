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
	folder    string   // folder of its artefacts
	artefacts []string // names of files in the folder
	remake    string   // the command that compiles it

	chip, arch string // p4c-barefoot's names; empty for bmv2
	number     int    // __TARGET_TOFINO__
}

func targets() []target {
	onChip := []string{bfrtFile, p4infoFile, resourcesFile}
	return []target{
		{"bmv2", "headgate_v1model.p4", "build", []string{jsonFile, p4infoFile}, "make p4", "", "", 0},
		{"tofino1", tofinoMain, "build/tofino1", onChip, "make p4-tofino", "tofino", "tna", 1},
		{"tofino2", tofinoMain, "build/tofino2", onChip, "make p4-tofino", "tofino2", "t2na", 2},
	}
}

// chips are the targets of p4c-barefoot.
func chips() []target { return targets()[1:] }

func (t target) digestFile() string { return path.Join(t.folder, digestFile) }

// build is a compiler's output for a target.
type build struct {
	target
	compiler string            // name and version
	sources  string            // digests of the sources before the compilation; empty for a build that was read
	files    map[string][]byte // artefacts by name
	device   map[string][]byte // files that only the device needs, by name in a folder of its own; not committed
}

func (b build) file(name string) []byte { return b.files[path.Join(b.folder, name)] }

func (b build) p4info() (*p4configv1.P4Info, error) {
	var info p4configv1.P4Info
	if err := prototext.Unmarshal(b.file(p4infoFile), &info); err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(b.folder, p4infoFile), err)
	}
	return &info, nil
}

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
