// Package yamlnode reads YAML strictly, node by node: every key must be known, none may come
// twice, and each fault names file, line, field, value and what is allowed. All faults of a
// file are reported together. Fabric files and experiments are read with it.
//
// A section is read by a function of its mapping, which asks for each key with its default
// and its range:
//
//	func readPort(m *yamlnode.Map) Port {
//		m.Need("number")
//		return Port{Number: m.Int("number", 1, 1, 509), Rate: m.Rate("rate", 0, 1, maxRate)}
//	}
//
// The function of the mapping around the section calls it: yamlnode.List(m, "ports", readPort). Keys that the
// function did not ask for are faults.
package yamlnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxText is the largest file that is read, in bytes.
const MaxText = 8 << 20

// maxFaults bounds a report; nobody would read the rest.
const maxFaults = 100

// Doc is one file being read. It collects faults. It belongs to one goroutine.
type Doc struct {
	file    string
	root    *yaml.Node
	faults  []Fault
	lines   Lines
	origins map[string]string // by path, where the value of a field that Set gave came from

	described *described        // nil except in Keys
	values    map[string]string // nil except in Values
}

// Fault is one thing wrong with a file.
type Fault struct {
	Line  int    // 1-based; 0 when unknown
	Field string // path such as links[3].rate
	Text  string // the value found and what is allowed
}

// Error prints a fault without its line.
func (f Fault) Error() string {
	if f.Field == "" {
		return f.Text
	}
	return f.Field + ": " + f.Text
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
		b.WriteString(": " + f.Error())
	}
	return b.String()
}

// Lines are the lines of a file's fields, by path.
type Lines map[string]int

// Given reports whether the file has a field or section.
func (l Lines) Given(path string) bool {
	_, given := l[path]
	return given
}

// Line returns the line of a field, or of the section that would contain it; 0 when the file has neither.
func (l Lines) Line(path string) int {
	for path != "" {
		if n, ok := l[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return 0
}

// Parse reads a text of one YAML document. Errors are an *Error. The file's name is for
// messages only.
func Parse(file string, text []byte) (*Doc, error) {
	d := &Doc{file: file, lines: Lines{}, origins: map[string]string{}}
	d.root = d.document(text)
	return d, d.Err()
}

// document returns the top node of the only document, nil after a fault.
func (d *Doc) document(text []byte) *yaml.Node {
	if len(text) > MaxText {
		d.add(0, "", "is %d bytes long, at most %d are allowed", len(text), MaxText)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) != 1 {
		d.add(0, "", "is empty, want a mapping")
		return nil
	}
	if err == nil {
		err = dec.Decode(&second)
	}
	switch {
	case err == nil:
		d.add(second.Line, "", "a second YAML document starts here, want one")
	case !errors.Is(err, io.EOF):
		d.syntax(err)
	default:
		return doc.Content[0]
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+): *`)

func (d *Doc) syntax(err error) {
	msg, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = strings.Replace(msg, m[0], "", 1)
	}
	d.add(line, "", "not YAML: %s", msg)
}

// Root returns the document's mapping. Keys that are not asked for are no faults.
func (d *Doc) Root() *Map { return d.mapping(d.root, "") }

// Read reads the document's mapping.
func (d *Doc) Read(read func(*Map)) {
	m := d.Root()
	read(m)
	m.done()
}

// Overlay returns a document that merges over into d as RFC 7396 does: mappings are merged key by key, other
// values are replaced, and a key with an empty value is removed. Beyond the RFC, a mapping may be merged into a
// list: each of its keys changes the elements that are mappings with this group or name, and "*" changes all of
// them. A key that selects no element is a fault. Lines stay those of the file.
func (d *Doc) Overlay(over *yaml.Node) *Doc {
	out := &Doc{file: d.file, lines: Lines{}, origins: d.origins}
	out.root = out.overlay(d.root, over)
	return out
}

func (d *Doc) overlay(base, over *yaml.Node) *yaml.Node {
	if over.Kind != yaml.MappingNode {
		return over
	}
	if base != nil && base.Kind == yaml.SequenceNode {
		return d.elements(base, over)
	}
	merged := *over
	merged.Content = nil
	if base != nil && base.Kind == yaml.MappingNode {
		merged = *base
		merged.Content = slices.Clone(base.Content)
	}
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		at := find(&merged, key.Value)
		switch gone := isNull(value); {
		case at < 0 && !gone:
			merged.Content = append(merged.Content, key, d.overlay(nil, value))
		case at >= 0 && gone:
			merged.Content = slices.Delete(merged.Content, at-1, at+1)
		case at >= 0:
			merged.Content[at] = d.overlay(merged.Content[at], value)
		}
	}
	return &merged
}

// elements merges a mapping into the elements of a list that its keys name.
func (d *Doc) elements(base, over *yaml.Node) *yaml.Node {
	merged := *base
	merged.Content = slices.Clone(base.Content)
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		found := false
		for j, e := range merged.Content {
			if key.Value == "*" || called(e, key.Value) {
				merged.Content[j], found = d.overlay(e, value), true
			}
		}
		if !found {
			d.add(key.Line, key.Value, "is over a list that has nothing of this group or name")
		}
	}
	merged.Content = slices.DeleteFunc(merged.Content, isNull)
	return &merged
}

// called reports whether an element of a list has a group or name.
func called(e *yaml.Node, name string) bool {
	if e.Kind != yaml.MappingNode {
		return false
	}
	for _, key := range []string{"group", "name"} {
		if at := find(e, key); at >= 0 && e.Content[at].Value == name {
			return true
		}
	}
	return false
}

// find returns the index of a key's value in a mapping's content, −1 when it is missing.
func find(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i + 1
		}
	}
	return -1
}

// Set puts a value over a field of the file, such as controller.listen. Faults of the field
// then name its origin, such as a flag.
func (d *Doc) Set(path, value, origin string) {
	n := d.root
	for key := range strings.SplitSeq(path, ".") {
		if n.Kind != yaml.MappingNode {
			return // a fault, which reading will find
		}
		at := find(n, key)
		if at < 0 {
			at = len(n.Content) + 1
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.MappingNode})
		}
		n = n.Content[at]
	}
	*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	d.origins[path] = origin
}

// Lines returns the lines of the fields that were read.
func (d *Doc) Lines() Lines { return d.lines }

// Given reports whether the file has a field or section.
func (d *Doc) Given(path string) bool { return d.lines.Given(path) }

// Fault adds a fault at a field, for contradictions between values that were read.
func (d *Doc) Fault(path, format string, args ...any) {
	d.add(d.lines.Line(path), path, format, args...)
}

func (d *Doc) add(line int, field, format string, args ...any) {
	if origin := d.origins[field]; origin != "" {
		field = origin
	}
	d.faults = append(d.faults, Fault{line, field, fmt.Sprintf(format, args...)})
}

// Unique reports the second use of a value; it has the path of the first.
type Unique[K comparable] map[K]string

// Use records a value at a path. text is the value as a fault shows it.
func (u Unique[K]) Use(d *Doc, key K, path, text string) {
	if first, used := u[key]; used {
		d.Fault(path, "is %s, which %s in line %d already is", text, first, d.Lines()[first])
		return
	}
	u[key] = path
}

// Join adds the faults of an overlay that the document does not have.
func (d *Doc) Join(overlay *Doc) {
	for _, f := range overlay.faults {
		if !slices.Contains(d.faults, f) {
			d.faults = append(d.faults, f)
		}
	}
}

// Err returns nil or an *Error with all faults so far.
func (d *Doc) Err() error {
	list := slices.Clone(d.faults)
	slices.SortStableFunc(list, func(a, b Fault) int { return a.Line - b.Line })
	return NewError(d.file, slices.Compact(list), maxFaults) // a part that is read twice has its faults twice
}

// NewError returns an *Error of at most that many faults and the number of the others; nil for none.
func NewError(file string, faults []Fault, most int) error {
	if len(faults) == 0 {
		return nil
	}
	if more := len(faults) - most; more > 0 {
		faults = append(faults[:most:most], Fault{Text: fmt.Sprintf("and %d more faults", more)})
	}
	return &Error{File: file, Faults: faults}
}
