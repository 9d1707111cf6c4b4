// Package keydoc describes the keys of the files that package yamlnode reads: for `headgate explain` and `headgate sim explain`, for the
// pages of keys under docs/reference, and for JSON schemas.
package keydoc

import (
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
)

// Key is one key of a file.
type Key struct {
	Path        string `json:"key"` // such as links[].rate, or policy.grants[].who
	Allowed     string `json:"allowed"`
	Default     string `json:"default"`        // Required, Computed, Told, None, or the value
	When        string `json:"when,omitempty"` // what other keys must be for this one to be allowed
	Description string `json:"description,omitempty"`
	Holds       bool   `json:"-"` // other keys

	Schema   yamlnode.Schema `json:"-"` // of its value
	required bool            // in each mapping that can hold it
}

// What stands for a default that is no value.
const (
	Required = "required"
	Computed = "follows from other keys"
	None     = "none"
	Told     = "see the description"
)

// Of describes the keys that a function reads. describe returns what a key does, "" where nobody says it.
func Of(read []yamlnode.Key, describe func(yamlnode.Key) string) (list []Key) {
	for _, k := range read {
		text := describe(k)
		list = append(list, Key{Path: k.Path, Allowed: k.Allowed, Default: defaultOf(k, text), When: k.When, Description: text, Holds: k.Holds, Schema: k.Schema, required: k.Required})
	}
	return list
}

func defaultOf(k yamlnode.Key, text string) string {
	switch {
	case k.Required || k.Needed:
		return Required
	case k.Computed:
		return Computed
	case k.Default == "" && strings.Contains(text, "efault"):
		return Told
	case k.Default == "":
		return None
	}
	return k.Default
}

// Find returns a key, and those directly below it; false when there is none. Brackets of lists may be
// left out.
func Find(keys []Key, path string) (found Key, below []Key, ok bool) {
	path = Plain(path)
	for _, k := range keys {
		switch rest, under := strings.CutPrefix(Plain(k.Path), path+"."); {
		case Plain(k.Path) == path:
			found, ok = k, true
		case under && !strings.Contains(rest, "."), path == "" && !strings.Contains(k.Path, "."):
			below = append(below, k)
		}
	}
	return found, below, ok
}

// Schema returns a JSON schema of the file with these keys.
func Schema(keys []Key) yamlnode.Schema {
	var own []yamlnode.Key
	for _, k := range keys {
		k.Schema.Description = k.Description
		if !k.Holds {
			k.Schema.Description += " Allowed: " + k.Allowed + ". Default: " + k.Default + "."
		}
		own = append(own, yamlnode.Key{Path: k.Path, Required: k.required && k.Default == Required, Schema: k.Schema})
	}
	s := yamlnode.Object()
	s.Version = "https://json-schema.org/draft/2020-12/schema"
	s.Put(own)
	return s
}

// Line returns a key's line of a page of keys.
func (k Key) Line() string {
	line := "- **" + k.Path + "**: " + k.Allowed
	if k.Default == Required {
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

// Plain returns a path without the brackets of lists and without the stars that stand for names.
func Plain(path string) string {
	return strings.NewReplacer("[]", "", ".*", "").Replace(path)
}
