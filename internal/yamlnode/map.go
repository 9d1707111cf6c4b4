package yamlnode

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxList bounds every list and mapping.
const maxList = 65536

// Map is a mapping being read. Each method marks the keys that it reads as known. A getter whose key is missing
// or wrong returns the default that it is given.
type Map struct {
	d            *Doc
	n            *yaml.Node
	path         string
	shown        string                // path with names in place of indices
	values       map[string]*yaml.Node // nil when the node is no mapping
	known        map[string]bool
	allowUnknown bool // set after a fault that hides some keys
}

func (d *Doc) mapping(n *yaml.Node, path string) *Map {
	m := &Map{d: d, n: n, path: path, shown: path, known: map[string]bool{}}
	d.lines[path] = n.Line
	if n.Kind != yaml.MappingNode {
		return m // done reports the fault, because it knows the expected keys
	}
	m.values = make(map[string]*yaml.Node, len(n.Content)/2)
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, twice := lines[key.Value]; twice {
			d.add(key.Line, m.join(key.Value), "is given twice, first in line %d", first)
			continue
		}
		lines[key.Value], m.values[key.Value] = key.Line, value
		d.lines[m.join(key.Value)] = value.Line
	}
	return m
}

// File returns the name of the file.
func (m *Map) File() string { return m.d.file }

func (m *Map) join(key string) string {
	if m.path == "" {
		return clip(key)
	}
	return m.path + "." + clip(key)
}

func (m *Map) index(key string, i int) string { return m.join(key) + "[" + strconv.Itoa(i) + "]" }

// Node returns the node of a key, nil when it is missing.
func (m *Map) Node(key string) *yaml.Node {
	m.known[key] = true
	return m.values[key]
}

// Has reports whether a key is there.
func (m *Map) Has(key string) bool {
	return m.Node(key) != nil || m.d.described != nil && m.d.described.given
}

// IsList reports whether a key is there and a list.
func (m *Map) IsList(key string) bool {
	if n := m.Node(key); n != nil {
		return n.Kind == yaml.SequenceNode
	}
	return m.Has(key)
}

// Patch returns the node of a mapping to put over a document, nil when it is missing.
func (m *Map) Patch(key string) *yaml.Node {
	if m.d.described != nil {
		m.d.described.add(Key{Path: m.join(key), Allowed: "a mapping with keys of the file", Schema: Schema{Type: "object"}})
	}
	return m.Node(key)
}

// Fault adds a fault at a key, or at the mapping when the key is missing or empty.
func (m *Map) Fault(key, format string, args ...any) {
	path := m.path
	if key != "" {
		path = m.join(key)
	}
	line, given := m.d.lines[path]
	if !given {
		line = m.n.Line
	}
	m.d.add(line, path, format, args...)
}

// AllowUnknown makes unknown keys no faults. It is for use after a fault that hides some keys.
func (m *Map) AllowUnknown() { m.allowUnknown = true }

// done reports a node that is not a mapping, and keys that were not read.
func (m *Map) done() {
	keys := strings.Join(slices.Sorted(maps.Keys(m.known)), ", ")
	if m.values == nil {
		m.d.add(m.n.Line, m.path, "is %s, want a mapping with the keys %s", kindName(m.n), keys)
		return
	}
	for i := 0; i+1 < len(m.n.Content) && !m.allowUnknown; i += 2 {
		if key := m.n.Content[i]; !m.known[key.Value] {
			m.d.add(key.Line, m.join(key.Value), "unknown key, want one of %s", keys)
		}
	}
}

// Need reports keys that are missing.
func (m *Map) Need(keys ...string) {
	for _, k := range keys {
		if s, path := m.d.described, m.join(k); s != nil {
			if s.required[path] = true; s.all && s.last[path] != s.run {
				s.last[path] = s.run
				s.needs[path]++
			}
		} else if m.values != nil && !m.Has(k) {
			m.Fault(k, "is missing")
		}
	}
}

// NeedIf is Need where a condition on other keys holds.
func (m *Map) NeedIf(need bool, keys ...string) {
	if need && m.d.described == nil {
		m.Need(keys...)
	}
}

// Sub calls read for the mapping of a key, and reports whether it is there.
func (m *Map) Sub(key string, read func(*Map)) bool {
	if m.d.described != nil {
		read(m.holds(key, m.join(key), "a mapping", Object()))
		return true
	}
	n := m.Node(key)
	if n == nil {
		return false
	}
	sub := m.d.mapping(n, m.join(key))
	sub.shown = m.show(key)
	read(sub)
	sub.done()
	return true
}

// Section reads the mapping of a key. A missing mapping is read as an empty one without required keys.
func Section[T any](m *Map, key string, read func(*Map) T) (v T) {
	if !m.Sub(key, func(s *Map) { v = read(s) }) {
		v = read(Empty())
	}
	return v
}

// Each calls read for each mapping of a list.
func (m *Map) Each(key string, read func(*Map)) {
	if m.d.described != nil {
		read(m.holds(key, m.join(key)+"[]", "a list of mappings", list(Object())))
		return
	}
	for i, n := range m.list(key) {
		e := m.d.mapping(n, m.index(key, i))
		e.shown = m.show(key) + "[" + nameIn(n, i) + "]"
		read(e)
		e.done()
	}
}

// List reads a list of mappings.
func List[T any](m *Map, key string, read func(*Map) T) (list []T) {
	m.Each(key, func(e *Map) { list = append(list, read(e)) })
	return list
}

// Entries calls read for each key of a mapping of mappings, in the file's order.
func (m *Map) Entries(key string, read func(name string, e *Map)) {
	m.Sub(key, func(sub *Map) {
		if sub.d.described != nil {
			read("*", sub.holds("*", sub.join("*"), "a mapping", Object()))
		}
		for i := 0; i+1 < len(sub.n.Content) && sub.values != nil; i += 2 {
			name := sub.n.Content[i].Value
			sub.Sub(name, func(e *Map) { read(name, e) })
		}
	})
}

// list returns the nodes of a list, none when it is empty or missing.
func (m *Map) list(key string) []*yaml.Node {
	n := m.Node(key)
	switch {
	case n == nil || isNull(n):
		return nil
	case n.Kind != yaml.SequenceNode:
		m.Fault(key, "is %s, want a list", kindName(n))
		return nil
	case len(n.Content) > maxList:
		m.Fault(key, "has %d elements, at most %d are allowed", len(n.Content), maxList)
		return nil
	}
	return n.Content
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

// kindName returns a node's kind in words.
func kindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias, which is not allowed"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return strconv.Quote(clip(n.Value))
	}
	return "empty"
}

// Empty returns a mapping without keys, for defaults.
func Empty() *Map {
	return (&Doc{lines: Lines{}}).mapping(&yaml.Node{Kind: yaml.MappingNode}, "")
}
