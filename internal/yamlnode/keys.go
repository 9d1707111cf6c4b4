package yamlnode

import (
	"fmt"
	"slices"
	"strconv"

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
	Schema   Schema // of its value
}

// described collects the keys of a reading function. Nil outside Keys.
type described struct {
	keys               []Key
	required, computed map[string]bool // by path
}

// Keys returns all keys that a function of a document's mapping asks for. It calls read with an
// empty document, in which every mapping is there and every list has one element.
func Keys(read func(*Doc)) []Key {
	s := &described{required: map[string]bool{}, computed: map[string]bool{}}
	read(&Doc{root: &yaml.Node{Kind: yaml.MappingNode}, lines: Lines{}, described: s})
	for i := range s.keys {
		k := &s.keys[i]
		k.Required, k.Computed = s.required[k.Path], k.Computed || s.computed[k.Path]
		if k.Required || k.Computed {
			k.Default, k.Schema.Default = "", nil
		}
	}
	return s.keys
}

func (s *described) add(k Key) {
	if !slices.ContainsFunc(s.keys, func(o Key) bool { return o.Path == k.Path }) {
		s.keys = append(s.keys, k)
	}
}

// Computed says that the defaults of keys follow from other keys.
func (m *Map) Computed(keys ...string) {
	for _, k := range keys {
		if m.d.described != nil {
			m.d.described.computed[m.join(k)] = true
		}
	}
}

// holds describes a key with keys of its own, and returns the mapping that stands for them.
func (m *Map) holds(key, path, allowed string, s Schema) *Map {
	m.d.described.add(Key{Path: m.join(key), Allowed: allowed, Holds: true, Schema: s})
	return m.d.mapping(&yaml.Node{Kind: yaml.MappingNode}, path)
}

// describe describes a key with a value.
func describe[T any](m *Map, key string, def T, k kind[T]) {
	d := Key{Path: m.join(key), Allowed: nameOf(def) + k.want, Schema: k.schema}
	text := fmt.Sprint(def)
	if amount, ok := any(def).(units.Bytes); ok && amount%units.KB != 0 {
		text = strconv.FormatInt(int64(amount), 10) + "B" // which is exact
	}
	var none T
	if _, err := k.parse(text); err != nil {
		d.Computed = text != fmt.Sprint(none) // a mark, which the function replaces
	} else if d.Default = text; text != "" {
		d.Schema.Default = text
		switch any(def).(type) {
		case int, float64, bool:
			d.Schema.Default = def
		}
	}
	m.d.described.add(d)
}

// nameOf names the kind of a value whose bounds alone do not.
func nameOf(v any) string {
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
