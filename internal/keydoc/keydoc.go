// Package keydoc describes the keys of the files that package yamlnode reads: for `headgate explain` and `headgate sim explain`, for the
// pages of keys under docs/reference, and for JSON schemas.
package keydoc

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
)

// Key is one key of a file, such as links[].rate, or policy.grants[].who. Its Default is Required, Computed, Told, None, or
// the value.
type Key = yamlnode.Key

// Texts for defaults that are no value.
const (
	Required = yamlnode.RequiredDefault
	Computed = "follows from other keys"
	None     = "none"
	Told     = "see the description"
)

// Describe describes the keys that a function reads. describe returns the description of a key, "" if there is none.
func Describe(read []Key, describe func(Key) string) []Key {
	list := slices.Clone(read)
	for i := range list {
		k := &list[i]
		k.Description = describe(*k)
		k.Default = defaultOf(*k, k.Description)
	}
	return list
}

func defaultOf(k Key, text string) string {
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
	own := slices.Clone(keys)
	for i := range own {
		k := &own[i]
		k.Schema.Description, k.Required = k.Description, k.Required && k.Default == Required
		if !k.Holds {
			k.Schema.Description += " Allowed: " + k.Allowed + ". Default: " + k.Default + "."
		}
	}
	s := yamlnode.Object()
	s.Version = "https://json-schema.org/draft/2020-12/schema"
	s.Put(own)
	return s
}

// Plain returns a path without the brackets of lists and the stars in place of names.
func Plain(path string) string {
	return strings.NewReplacer("[]", "", ".*", "").Replace(path)
}
