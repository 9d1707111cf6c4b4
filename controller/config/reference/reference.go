// Package reference describes each key of the fabric file and of a policy. The allowed values and the default come
// from the functions that read the files, the description from the comments of the configuration's types. The
// comments are in keys.json. The full reference is docs/reference/keys.md, and, as JSON schemas,
// docs/reference/fabric.schema.json and docs/reference/policy.schema.json. The package's test writes these files
// with -update.
package reference

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/keydoc"
	"github.com/headgate/headgate/internal/yamlnode"
)

// Policy is the prefix of keys of a policy. The fabric file has no such key.
const Policy = "policy"

//go:embed keys.json
var comments []byte

// Keys returns all keys; a section precedes its keys.
func Keys() ([]keydoc.Key, error) {
	var texts map[string]string
	if err := json.Unmarshal(comments, &texts); err != nil {
		return nil, err
	}
	read := append(config.Keys(controller.Sections()), yamlnode.Key{Path: Policy, Allowed: "a file of its own", Holds: true})
	for _, k := range authz.PolicyKeys() {
		k.Path = Policy + "." + k.Path
		read = append(read, k)
	}
	list := keydoc.Describe(read, func(k yamlnode.Key) string { return texts[keydoc.Plain(k.Path)] })
	for i, k := range list {
		rest, own := strings.CutPrefix(k.Path, "switches[].")
		if of, _, section := keydoc.Find(list, rest); own && section && strings.Contains(rest, ".") {
			list[i].Default, list[i].Description, list[i].Schema.Default = "that of "+rest, of.Description, nil
		}
	}
	return list, nil
}

// Schema returns a JSON schema: of the fabric file if of is "", of a policy file if it is Policy.
func Schema(keys []keydoc.Key, of string) yamlnode.Schema {
	var own []keydoc.Key
	for _, k := range keys {
		path, below := strings.CutPrefix(k.Path, Policy+".")
		if below == (of == Policy) && k.Path != Policy {
			k.Path = path
			own = append(own, k)
		}
	}
	return keydoc.Schema(own)
}
