package yamlnode

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// Key is a key that a reading function asks for.
type Key struct {
	Path        string `json:"key"` // such as links[].rate
	Allowed     string `json:"allowed"`
	Default     string `json:"default"`        // empty where there is none, or a Computed one; see package keydoc
	When        string `json:"when,omitempty"` // condition on other keys under which this one is read; empty for none
	Description string `json:"description,omitempty"`
	Required    bool   `json:"-"` // required in its mapping
	Computed    bool   `json:"-"` // the default follows from other keys
	Needed      bool   `json:"-"` // required wherever it is read
	Holds       bool   `json:"-"` // the key's value is a mapping, or a list of mappings
	Schema      Schema `json:"-"` // schema of its value
}

// RequiredDefault is shown in place of the default of a required key.
const RequiredDefault = "required"

// Line returns the key's line in a page of keys.
func (k Key) Line() string {
	line := "- **" + k.Path + "**: " + k.Allowed
	if k.Default == RequiredDefault {
		line += "; required"
	} else if !k.Holds {
		line += "; default: " + k.Default
	}
	if k.When != "" {
		line += "; where " + k.When
	}
	if k.Description != "" {
		line += ". " + k.Description
	}
	return line + "\n"
}

// described collects the keys of a reading function. Nil outside Keys.
type described struct {
	keys               []Key
	required, computed map[string]bool // by path

	// Of AllKeys.
	all     bool
	given   bool                // Has returns true
	run     int                 // number of the present run
	chosen  map[string]string   // chosen values of keys in this run, by path
	todo    []map[string]string // chosen values of the runs to come
	choices map[string][]string // all words of a key
	asked   map[string][]run    // the runs that ask for a key
	needs   map[string]int      // number of runs that need a key
	last    map[string]int      // the last run that needs a key
}

// run is one call of read: its number, and the word of each key that has words to choose from.
type run struct {
	number int
	words  map[string]string
}

// AllKeys is Keys for a function that asks for keys depending on the values of others. It calls read with each
// word of each OneOf, and with Has true as well as false.
func AllKeys(read func(*Doc)) []Key {
	s := &described{required: map[string]bool{}, computed: map[string]bool{}, all: true, todo: []map[string]string{{}},
		choices: map[string][]string{}, asked: map[string][]run{}, needs: map[string]int{}, last: map[string]int{}}
	for len(s.todo) > 0 {
		words := s.todo[0]
		s.todo = s.todo[1:]
		for _, s.given = range []bool{false, true} {
			s.run++
			s.chosen = maps.Clone(words)
			read(&Doc{root: &yaml.Node{Kind: yaml.MappingNode}, lines: Lines{}, described: s})
		}
	}
	for i := range s.keys {
		k := &s.keys[i]
		above := k.Path[:max(strings.LastIndexByte(k.Path, '.'), 0)]
		need := s.needs[k.Path]
		k.Required, k.Needed = need > 0 && (above == "" || need == len(s.asked[strings.TrimSuffix(above, "[]")])), need > 0 && need >= len(s.asked[k.Path])
		if k.Computed = k.Computed || s.computed[k.Path]; k.Needed || k.Computed {
			k.Default, k.Schema.Default = "", nil
		}
		k.When = s.when(k.Path)
	}
	return s.keys
}

// choose returns the word of a key in this run.
func (s *described) choose(path, def string, words []string) string {
	if s.choices[path] == nil {
		s.choices[path] = words
		for _, w := range words {
			with := maps.Clone(s.chosen)
			with[path] = w
			s.todo = append(s.todo, with)
		}
	}
	if _, ok := s.chosen[path]; !ok {
		s.chosen[path] = cmp.Or(def, words[0])
	}
	return s.chosen[path]
}

// when returns the condition under which a key is asked for: the words of the keys beside and above it.
func (s *described) when(path string) string {
	var parts []string
	for _, of := range slices.Sorted(maps.Keys(s.choices)) {
		end := strings.LastIndexByte(of, '.') + 1
		if !strings.HasPrefix(path, of[:end]) || path == of || s.needs[of] == 0 {
			continue
		}
		with := map[string]bool{}
		for _, r := range s.asked[path] {
			if w := r.words[of]; w != "" {
				with[w] = true
			}
		}
		if len(with) > 0 && len(with) < len(s.choices[of]) {
			parts = append(parts, of[end:]+" is "+strings.Join(slices.Sorted(maps.Keys(with)), ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// join adds the allowed values of a second reading of the same key.
func (k *Key) join(o Key) {
	if !strings.Contains(k.Allowed, o.Allowed) {
		k.Allowed += ", or " + o.Allowed
	}
	if !reflect.DeepEqual(k.Schema.Type, o.Schema.Type) {
		k.Schema = Schema{}
	} else if k.Schema.Minimum != o.Schema.Minimum || k.Schema.Maximum != o.Schema.Maximum {
		k.Schema.Minimum, k.Schema.Maximum = nil, nil
	}
	k.Holds, k.Computed = k.Holds || o.Holds, k.Computed || o.Computed || k.Default != o.Default
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
	if s.all {
		if list := s.asked[k.Path]; len(list) == 0 || list[len(list)-1].number != s.run {
			s.asked[k.Path] = append(list, run{s.run, s.chosen})
		}
		if i := slices.IndexFunc(s.keys, func(o Key) bool { return o.Path == k.Path }); i >= 0 {
			s.keys[i].join(k)
			return
		}
	}
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

// holds describes a key with keys below it, and returns the mapping to read them from.
func (m *Map) holds(key, path, allowed string, s Schema) *Map {
	m.d.described.add(Key{Path: m.join(key), Allowed: allowed, Holds: true, Schema: s})
	return m.d.mapping(&yaml.Node{Kind: yaml.MappingNode}, path)
}

// describe describes a key with a value.
func describe[T any](m *Map, key string, def T, k kind[T]) {
	d := Key{Path: m.join(key), Allowed: nameOf(def) + k.want, Schema: k.schema}
	text := fmt.Sprint(def)
	if amount, ok := any(def).(units.Bytes); ok && amount%units.KB != 0 {
		text = strconv.FormatInt(int64(amount), 10) + "B" // the number of bytes is exact
	}
	var none T
	if _, err := k.parse(text); text == "NaN" {
		d.Default = ""
	} else if err != nil {
		d.Computed = text != fmt.Sprint(none) // a mark in place of a computed default
	} else if d.Default = text; text != "" {
		d.Schema.Default = text
		switch any(def).(type) {
		case int, float64, bool:
			d.Schema.Default = def
		}
	}
	m.d.described.add(d)
}

// nameOf names the kind of a value if its bounds do not show it.
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

// Schema is a JSON schema (draft 2020-12) of a value, with the keywords that are in use here.
type Schema struct {
	Version     string             `json:"$schema,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"` // a word, or a list of them
	Enum        []string           `json:"enum,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Minimum     any                `json:"minimum,omitempty"`
	Maximum     any                `json:"maximum,omitempty"`
	Above       any                `json:"exclusiveMinimum,omitempty"`
	Below       any                `json:"exclusiveMaximum,omitempty"`
	Default     any                `json:"default,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	More        any                `json:"additionalProperties,omitempty"`
}

// Object returns the schema of a mapping that has no other keys than its properties.
func Object() Schema {
	return Schema{Type: "object", Properties: map[string]*Schema{}, More: new(bool)}
}

// list returns the schema of a list, which may be left empty.
func list(of Schema) Schema { return Schema{Type: []string{"array", "null"}, Items: &of} }

// anyText is the schema of a text. YAML reads some texts as numbers or truth values; a Map reads these as texts
// too.
var anyText = Schema{Type: []string{"string", "number", "boolean"}}

// Put puts the keys below a schema of a mapping.
func (s *Schema) Put(keys []Key) {
	at := map[string]*Schema{"": s}
	for _, k := range keys {
		own, end := k.Schema, max(strings.LastIndexByte(k.Path, '.'), 0)
		parent, name := at[k.Path[:end]], strings.TrimPrefix(k.Path[end:], ".")
		if parent == nil {
			continue // it is below a key that need not be a mapping
		}
		if name == "*" {
			parent.More = &own
		} else if parent.Properties != nil {
			parent.Properties[name] = &own
		}
		if k.Required {
			parent.Required = append(parent.Required, name)
		}
		if at[k.Path] = &own; own.Items != nil {
			items := *own.Items
			own.Items, at[k.Path+"[]"] = &items, &items
		}
	}
}
