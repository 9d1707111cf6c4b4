// Package yamlnode reads YAML strictly, node by node: every key must be known, none may
// come twice, and each fault names file, line, field, value and what is allowed. All
// faults of a file are reported together.
package yamlnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Doc is one file being read. It collects faults and is used once.
type Doc struct {
	file   string
	faults []Fault
	root   *yaml.Node
}

// Fault is one thing wrong with a file.
type Fault struct {
	Line  int
	Field string
	Text  string
}

// Error is a file with faults, in the order of their lines.
type Error struct {
	File   string
	Faults []Fault
}

// Error prints one fault a line, each as file:line: field: text.
func (e *Error) Error() string {
	var b strings.Builder
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		if f.Field != "" {
			b.WriteString(": " + f.Field)
		}
		b.WriteString(": " + f.Text)
	}
	return b.String()
}

const (
	maxFaults = 50
	maxText   = 16 << 20
	maxDepth  = 32
)

// Parse reads one YAML document, which must be a mapping without anchors and aliases.
func Parse(file string, text []byte) (*Doc, error) {
	d := &Doc{file: file}
	if len(text) > maxText {
		return nil, fmt.Errorf("%s: %d B, at most %d are allowed", file, len(text), maxText)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: is empty", file)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: holds more than one document", file)
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("%s: is empty", file)
	}
	d.root = doc.Content[0]
	d.noAliases(d.root, 0)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Doc) noAliases(n *yaml.Node, depth int) {
	switch {
	case depth > maxDepth:
		d.add(n.Line, "", "is nested more than %d deep", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.add(n.Line, "", "anchors and aliases are not allowed")
	default:
		for _, c := range n.Content {
			d.noAliases(c, depth+1)
		}
	}
}

// Root returns the document's mapping.
func (d *Doc) Root() *Map { return d.mapping(d.root, "") }

// Overlay returns a document with over's keys put over d's: mappings key by key, all else
// as a whole. Lines stay those of the file.
func (d *Doc) Overlay(over *yaml.Node) *Doc {
	return &Doc{file: d.file, root: overlay(d.root, over)}
}

func overlay(base, over *yaml.Node) *yaml.Node {
	if base == nil || base.Kind != yaml.MappingNode || over.Kind != yaml.MappingNode {
		return over
	}
	merged := *base
	merged.Content = append([]*yaml.Node(nil), base.Content...)
next:
	for i := 0; i+1 < len(over.Content); i += 2 {
		for j := 0; j+1 < len(merged.Content); j += 2 {
			if merged.Content[j].Value == over.Content[i].Value {
				merged.Content[j+1] = overlay(merged.Content[j+1], over.Content[i+1])
				continue next
			}
		}
		merged.Content = append(merged.Content, over.Content[i], over.Content[i+1])
	}
	return &merged
}

func (d *Doc) add(line int, field, format string, args ...any) {
	d.faults = append(d.faults, Fault{line, field, fmt.Sprintf(format, args...)})
}

// Err returns nil or an *Error with all faults so far.
func (d *Doc) Err() error {
	if len(d.faults) == 0 {
		return nil
	}
	list := append([]Fault(nil), d.faults...)
	sort.SliceStable(list, func(i, j int) bool { return list[i].Line < list[j].Line })
	list = slices.Compact(list) // a part that is read twice has its faults twice
	if more := len(list) - maxFaults; more > 0 {
		list = append(list[:maxFaults], Fault{Text: fmt.Sprintf("and %d more faults", more)})
	}
	return &Error{File: d.file, Faults: list}
}
