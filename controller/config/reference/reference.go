// Package reference says what each key of the fabric file and of a policy is: what may stand there and what does by
// default, as the functions that read the files ask for it, and what the comments of the
// configuration's types say. The comments are in keys.json, all of it is in docs/reference/keys.md, and as JSON schemas in
// docs/reference/fabric.schema.json and docs/reference/policy.schema.json. The package's test writes these files with -update.
package reference

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

// Key is one key of the fabric file, or of a policy.
type Key struct {
	Path        string `json:"key"` // such as links[].rate, or policy.grants[].who
	Allowed     string `json:"allowed"`
	Default     string `json:"default"` // Required, Computed, Told, None, or the value
	Description string `json:"description,omitempty"`
	Holds       bool   `json:"-"` // other keys

	schema yamlnode.Schema
}

// What stands for a default that is no value.
const (
	Required = "required"
	Computed = "follows from other keys"
	None     = "none"
	Told     = "see the description"
)

// Policy is before keys of a policy. The fabric file has no such key.
const Policy = "policy"

//go:embed keys.json
var comments []byte

// Keys returns all keys, each behind the one that holds it.
func Keys() ([]Key, error) {
	var texts map[string]string
	if err := json.Unmarshal(comments, &texts); err != nil {
		return nil, err
	}
	read := append(config.Keys(controller.Sections()), yamlnode.Key{Path: Policy, Allowed: "a file of its own", Holds: true})
	for _, k := range authz.PolicyKeys() {
		k.Path = Policy + "." + k.Path
		read = append(read, k)
	}
	var list []Key
	for _, k := range read {
		text := texts[plain(k.Path)]
		list = append(list, Key{Path: k.Path, Allowed: k.Allowed, Default: defaultOf(k, text), Description: text, Holds: k.Holds, schema: k.Schema})
	}
	for i, k := range list {
		rest, own := strings.CutPrefix(k.Path, "switches[].")
		if of, _, section := Find(list, rest); own && section && strings.Contains(rest, ".") {
			list[i].Default, list[i].Description, list[i].schema.Default = "that of "+rest, of.Description, nil
		}
	}
	return list, nil
}

func defaultOf(k yamlnode.Key, text string) string {
	switch {
	case k.Required:
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
	path = plain(path)
	for _, k := range keys {
		switch rest, under := strings.CutPrefix(plain(k.Path), path+"."); {
		case plain(k.Path) == path:
			found, ok = k, true
		case under && !strings.Contains(rest, "."), path == "" && !strings.Contains(k.Path, "."):
			below = append(below, k)
		}
	}
	return found, below, ok
}

// Schema returns a JSON schema of the fabric file for "", of a policy for Policy.
func Schema(keys []Key, of string) yamlnode.Schema {
	var own []yamlnode.Key
	for _, k := range keys {
		path, below := strings.CutPrefix(k.Path, Policy+".")
		if below != (of == Policy) || k.Path == Policy {
			continue
		}
		k.schema.Description = k.Description
		if !k.Holds {
			k.schema.Description += " Allowed: " + k.Allowed + ". Default: " + k.Default + "."
		}
		own = append(own, yamlnode.Key{Path: path, Required: k.Default == Required, Schema: k.schema})
	}
	s := yamlnode.Object()
	s.Version = "https://json-schema.org/draft/2020-12/schema"
	s.Put(own)
	return s
}

// plain returns a path without brackets.
func plain(path string) string { return strings.ReplaceAll(path, "[]", "") }
