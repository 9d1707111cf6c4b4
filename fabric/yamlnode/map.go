package yamlnode

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// Map is a mapping being read. Each getter makes its key known; Done reports the others.
// A getter whose key is missing returns the default that it is given.
type Map struct {
	d     *Doc
	n     *yaml.Node
	path  string
	known []string
}

func (d *Doc) mapping(n *yaml.Node, path string) *Map {
	m := &Map{d: d, n: n, path: path}
	if n.Kind != yaml.MappingNode {
		d.add(n.Line, path, "is %s, want a mapping", kindName(n))
		m.n = &yaml.Node{Kind: yaml.MappingNode, Line: n.Line}
		return m
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if first, twice := lines[key.Value]; twice {
			d.add(key.Line, m.join(key.Value), "is given twice, first in line %d", first)
		}
		lines[key.Value] = key.Line
	}
	return m
}

func (m *Map) join(key string) string {
	if m.path == "" {
		return clip(key)
	}
	return m.path + "." + clip(key)
}

// Node returns the node of a key, nil when it is missing.
func (m *Map) Node(key string) *yaml.Node {
	m.known = append(m.known, key)
	for i := 0; i+1 < len(m.n.Content); i += 2 {
		if m.n.Content[i].Value == key {
			return m.n.Content[i+1]
		}
	}
	return nil
}

// Has reports whether a key is there.
func (m *Map) Has(key string) bool {
	n := len(m.known)
	has := m.Node(key) != nil
	m.known = m.known[:n]
	return has
}

// Fault adds a fault at a key, or at the mapping when the key is missing or empty.
func (m *Map) Fault(key, format string, args ...any) {
	line, field := m.n.Line, m.path
	if key != "" {
		field = m.join(key)
		n := len(m.known)
		if v := m.Node(key); v != nil {
			line = v.Line
		}
		m.known = m.known[:n]
	}
	m.d.add(line, field, format, args...)
}

// Done reports keys that nobody asked for.
func (m *Map) Done() {
	sort.Strings(m.known)
	for i := 0; i+1 < len(m.n.Content); i += 2 {
		key := m.n.Content[i]
		at := sort.SearchStrings(m.known, key.Value)
		if at == len(m.known) || m.known[at] != key.Value {
			m.d.add(key.Line, m.join(key.Value), "unknown key, want one of %s", strings.Join(compact(m.known), ", "))
		}
	}
}

func compact(sorted []string) []string {
	var out []string
	for i, s := range sorted {
		if i == 0 || s != sorted[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// Need reports a key that is missing.
func (m *Map) Need(keys ...string) {
	for _, k := range keys {
		if !m.Has(k) {
			m.d.add(m.n.Line, m.join(k), "is missing")
		}
	}
}

// Sub returns the mapping of a key, nil when it is missing.
func (m *Map) Sub(key string) *Map {
	if n := m.Node(key); n != nil {
		return m.d.mapping(n, m.join(key))
	}
	return nil
}

// Each calls read for each mapping of a list.
func (m *Map) Each(key string, read func(*Map)) {
	for i, n := range m.list(key) {
		read(m.d.mapping(n, m.join(key)+"["+strconv.Itoa(i)+"]"))
	}
}

// Entries calls read for each key of a mapping of mappings, in the file's order.
func (m *Map) Entries(key string, read func(name string, e *Map)) {
	sub := m.Sub(key)
	if sub == nil {
		return
	}
	for i := 0; i+1 < len(sub.n.Content); i += 2 {
		name := sub.n.Content[i].Value
		read(name, m.d.mapping(sub.n.Content[i+1], sub.join(name)))
	}
}

func (m *Map) list(key string) []*yaml.Node {
	n := m.Node(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		m.d.add(n.Line, m.join(key), "is %s, want a list", kindName(n))
		return nil
	}
	return n.Content
}

// Texts returns a list of words.
func (m *Map) Texts(key string) []string {
	var out []string
	for i, n := range m.list(key) {
		if n.Kind != yaml.ScalarNode {
			m.d.add(n.Line, m.join(key)+"["+strconv.Itoa(i)+"]", "is %s, want a word", kindName(n))
			continue
		}
		out = append(out, n.Value)
	}
	return out
}

func (m *Map) scalar(key, want string) (string, *yaml.Node) {
	n := m.Node(key)
	if n == nil {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		m.d.add(n.Line, m.join(key), "is %s, want %s", kindName(n), want)
		return "", nil
	}
	return n.Value, n
}

// Text returns a text.
func (m *Map) Text(key, def string) string {
	if s, n := m.scalar(key, "a text"); n != nil {
		return s
	}
	return def
}

// OneOf returns a word out of a list.
func (m *Map) OneOf(key, def string, allowed ...string) string {
	s, n := m.scalar(key, "one of "+strings.Join(allowed, ", "))
	if n == nil {
		return def
	}
	for _, a := range allowed {
		if a == s {
			return s
		}
	}
	m.d.add(n.Line, m.join(key), "is %q, want one of %s", clip(s), strings.Join(allowed, ", "))
	return def
}

// Bool returns true or false.
func (m *Map) Bool(key string, def bool) bool {
	return m.OneOf(key, strconv.FormatBool(def), "true", "false") == "true"
}

// Int returns an integer from low to high.
func (m *Map) Int(key string, def, low, high int) int {
	s, n := m.scalar(key, "an integer")
	if n == nil {
		return def
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < low || v > high {
		m.d.add(n.Line, m.join(key), "is %q, want an integer from %d to %d", clip(s), low, high)
		return def
	}
	return v
}

// Ints returns a list of integers from low to high.
func (m *Map) Ints(key string, low, high int) []int {
	var out []int
	for i, n := range m.list(key) {
		v, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || v < low || v > high {
			m.d.add(n.Line, m.join(key)+"["+strconv.Itoa(i)+"]", "is %s, want an integer from %d to %d", kindName(n), low, high)
			continue
		}
		out = append(out, v)
	}
	return out
}

// Float returns a number from low to high.
func (m *Map) Float(key string, def, low, high float64) float64 {
	s, n := m.scalar(key, "a number")
	if n == nil {
		return def
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || v < low || v > high {
		m.d.add(n.Line, m.join(key), "is %q, want a number from %g to %g", clip(s), low, high)
		return def
	}
	return v
}

// Bytes returns an amount such as "16MB" from low to high.
func (m *Map) Bytes(key string, def, low, high units.Bytes) units.Bytes {
	return quantity(m, key, def, low, high, units.ParseBytes)
}

// Time returns a time such as "2us" from low to high.
func (m *Map) Time(key string, def, low, high units.Time) units.Time {
	return quantity(m, key, def, low, high, units.ParseTime)
}

// Rate returns a rate such as "100Gbps" from low to high.
func (m *Map) Rate(key string, def, low, high units.Rate) units.Rate {
	return quantity(m, key, def, low, high, units.ParseRate)
}

func quantity[T interface {
	~int64
	String() string
}](m *Map, key string, def, low, high T, parse func(string) (T, error)) T {
	s, n := m.scalar(key, "a value with a unit such as "+high.String())
	if n == nil {
		return def
	}
	v, err := parse(s)
	switch {
	case err != nil:
		m.d.add(n.Line, m.join(key), "%v", err)
		return def
	case v < low || v > high:
		m.d.add(n.Line, m.join(key), "is %q, want %v to %v", clip(s), low, high)
		return def
	}
	return v
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			return strconv.Quote(clip(n.Value))
		}
	}
	return "empty"
}

// Empty returns a mapping without keys, for defaults.
func Empty() *Map {
	return &Map{d: &Doc{}, n: &yaml.Node{Kind: yaml.MappingNode}}
}
