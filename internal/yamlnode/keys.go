package yamlnode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// Key is a key that a reading function asks for.
type Key struct {
	Path     string // such as links[].rate
	Allowed  string // what it may be
	Default  string // empty where there is none, or a Computed one
	Required bool   // in the mapping that has it
	Computed bool   // the default follows from other keys
	Holds    bool   // other keys, as a mapping or a list of them
}

// described is what describing a reading function collects.
type described struct {
	keys     []Key
	required map[string]bool
	vary     bool // getters return another value than the default
}

// Keys returns all keys that a function of a document's mapping asks for, as if each of its
// mappings were there and each list had one element. It calls read twice, the second time with
// values that differ from the defaults: the defaults that then change are computed.
func Keys(read func(*Doc)) []Key {
	var runs [2]*described
	for i := range runs {
		runs[i] = &described{required: map[string]bool{}, vary: i > 0}
		read(&Doc{root: &yaml.Node{Kind: yaml.MappingNode}, lines: Lines{}, described: runs[i]})
	}
	varied := map[string]Key{}
	for _, k := range runs[1].keys {
		varied[k.Path] = k
	}
	keys := runs[0].keys
	for i, k := range keys {
		if k.Allowed != varied[k.Path].Allowed {
			keys[i].Allowed += ", or others with other values of other keys"
		}
		keys[i].Required = runs[0].required[k.Path] && runs[1].required[k.Path]
		if keys[i].Computed = k.Computed || k.Default != varied[k.Path].Default; keys[i].Computed || keys[i].Required {
			keys[i].Default = ""
		}
	}
	return keys
}

// add adds a key that a mapping asks for.
func (s *described) add(k Key) {
	if !slices.ContainsFunc(s.keys, func(o Key) bool { return o.Path == k.Path }) {
		s.keys = append(s.keys, k)
	}
}

// holds describes a key with keys of its own, and returns the mapping that stands for them.
func (m *Map) holds(key, path, allowed string) *Map {
	m.d.described.add(Key{Path: m.join(key), Allowed: allowed, Holds: true})
	return m.d.mapping(&yaml.Node{Kind: yaml.MappingNode}, path)
}

// describe describes a key with a value, and returns the default or, to vary, another value.
func describe[T any](m *Map, key string, def T, want string, parse func(string) (T, error)) T {
	k := Key{Path: m.join(key), Allowed: kindOf(def) + want}
	var none T
	text := fmt.Sprint(def)
	if amount, ok := any(def).(units.Bytes); ok && amount%units.KB != 0 {
		text = strconv.FormatInt(int64(amount), 10) + "B" // which is exact
	}
	if _, err := parse(text); err == nil {
		k.Default = text
	} else {
		k.Computed = text != fmt.Sprint(none) // a mark, which the function replaces
	}
	m.d.described.add(k)
	if v, ok := sample(def, want, parse); ok && m.d.described.vary {
		return v
	}
	return def
}

// describeList is describe for a list of values.
func describeList[T any](m *Map, key, want string, parse func(string) (T, error)) []T {
	var none T
	m.d.described.add(Key{Path: m.join(key), Allowed: "a list, of each " + kindOf(none) + want})
	if v, ok := sample(none, want, parse); ok && m.d.described.vary {
		return []T{v}
	}
	return nil
}

// kindOf names the kind of a value whose bounds alone do not.
func kindOf(v any) string {
	switch v.(type) {
	case units.Time:
		return "a time, "
	case units.Bytes:
		return "an amount, "
	case units.Rate:
		return "a rate, "
	}
	return ""
}

// sample returns a value that is not the default: what is allowed names some.
func sample[T any](def T, want string, parse func(string) (T, error)) (v T, ok bool) {
	words := strings.FieldsFunc(want, func(r rune) bool { return strings.ContainsRune(` ,;"`, r) })
	slices.Reverse(words)
	for _, text := range append(words, "1", "0.5") {
		if v, err := parse(text); err == nil && fmt.Sprint(v) != fmt.Sprint(def) {
			return v, true
		}
	}
	return def, false
}
