package yamlnode

import "strings"

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

// anyText is the schema of a text. YAML reads some texts as numbers or truth values, and a Map as texts.
var anyText = Schema{Type: []string{"string", "number", "boolean"}}

// Put puts the keys below a schema of a mapping.
func (s *Schema) Put(keys []Key) {
	at := map[string]*Schema{"": s}
	for _, k := range keys {
		own, end := k.Schema, max(strings.LastIndexByte(k.Path, '.'), 0)
		parent, name := at[k.Path[:end]], strings.TrimPrefix(k.Path[end:], ".")
		if parent == nil {
			continue // below a key that may be a mapping or something else
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
